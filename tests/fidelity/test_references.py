import pytest

from fidelity.case import Case, Outcome
from fidelity.execution import simulate_case, simulate_cases
from fidelity.references import REFERENCES
from fidelity.references.step_times import step_times
from simcore.core.errors import FileError

HEADER = "engine,gpu,model,precision,tp,isl,osl,concurrency_or_rate,metric,value,unit,notes\n"


def test_a_hybrid_step_is_found_in_the_run(tmp_path):
    path = tmp_path / "steps.csv"
    row = "sarathi,2xA100-80GB-PCIe,Yi-34B,fp16,2,,,batch: 1021 prefill + 3 decode tokens,batch_execution_time,217,ms,"
    path.write_text(f"{HEADER}{row}\n")
    (case,) = step_times(path)
    assert isinstance(case, Case)
    found = simulate_case(case)
    assert isinstance(found, Outcome)
    (simulated,) = found.simulated.values()
    assert simulated is not None
    assert 0.01 < simulated < 1


def test_a_broken_figure_names_file_and_line(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text(f"{HEADER}e,g,m,fp16,1,,,load,metric,much,s,\n")
    with pytest.raises(FileError, match=r"steps\.csv, line 2: value is 'much'"):
        step_times(path)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.file)
def test_every_reference_is_read_and_its_first_case_runs(reference, shared_data):
    found = reference.read(shared_data / reference.file)
    cases = [item for item in found if isinstance(item, Case)]
    assert cases
    assert set(reference.groups) <= cases[0].labels.keys()
    outcome = simulate_case(min(cases, key=lambda case: case.document["workload"].get("requests", 0)))
    assert isinstance(outcome, Outcome)
    assert all(value is not None and value > 0 for value in outcome.simulated.values())


def test_outcomes_do_not_depend_on_the_number_of_processes(shared_data):
    reference = REFERENCES[0]
    cases = [item for item in reference.read(shared_data / reference.file) if isinstance(item, Case)][:4]
    alone, together = simulate_cases(cases, jobs=1), simulate_cases(cases, jobs=2)
    assert [each.simulated for each in alone] == [each.simulated for each in together]
    assert [each.case.labels for each in alone] == [each.case.labels for each in together]
