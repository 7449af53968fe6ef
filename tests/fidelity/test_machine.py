import json

from fidelity.machine import kernels_of, pcie_access
from fidelity.replay import _document
from fidelity.request_runs import read_request_run
from simcore.hardware import load_accelerator
from simcore.models import load_model
from tests.fidelity.request_run_folder import CONFIG, write_run


def test_the_way_is_the_one_that_reaches_what_the_run_states():
    gpu = load_accelerator("rtx-pro-6000-blackwell")
    assert pcie_access(gpu, None) == "auto"
    assert pcie_access(gpu, 16e9) == "host"
    assert pcie_access(gpu, 40e9) == "peer"
    assert pcie_access(load_accelerator("h100-sxm"), 16e9) == "auto"


def test_kernels_are_those_of_the_version_that_ran():
    gpu, dense, experts = "rtx-pro-6000-blackwell", load_model("llama-3.1-8b"), load_model("mixtral-8x7b")
    assert kernels_of(gpu, "vllm", "0.19.0", dense) == "vllm-0.19.0"
    assert kernels_of(gpu, "vllm", "0.19.0", experts) == "vllm-0.19.0"  # which has no experts: a fallback profile has
    assert kernels_of("rtx-4090", "vllm", "0.19.0", experts) == "auto"  # where none can lend them
    assert kernels_of(gpu, "vllm", "0.18.0", dense) == "auto"


def test_a_run_tells_its_links(tmp_path):
    folder = write_run(tmp_path / "run")
    assert read_request_run(folder).link_bytes_per_s is None
    (folder / "config.json").write_text(json.dumps(CONFIG | {"link_bw": 16}))
    run = read_request_run(folder)
    assert run.link_bytes_per_s == 16e9
    document = _document(run)
    assert document["cluster"]["pcie"] == "auto"  # which is through the host for GeForce
    assert document["pricing"]["profile"] == "vllm-0.19.0"
