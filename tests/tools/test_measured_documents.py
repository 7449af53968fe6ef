"""Documents that take minutes to make: a part of each is made again."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
ONE_CAPACITY = (20_000_000,)


def test_a_capacity_of_the_prefix_cache_is_as_the_document_says(shared_data):
    script = runpy.run_path(str(ROOT / "tools" / "prefix_cache.py"))
    trace = shared_data / "traces" / "mooncake" / script["TRACES"]["synthetic"]
    made = list(script["table"](*script["replayed"](trace, ONE_CAPACITY), ONE_CAPACITY))
    _, _, section = (
        (ROOT / "docs" / "results" / "prefix-cache.md").read_text(encoding="utf-8").partition("## synthetic\n")
    )
    assert set(made) <= set(section.splitlines())


@pytest.mark.long
def test_known_results_of_policies_are_as_the_document_says():
    script = runpy.run_path(str(ROOT / "tools" / "policy_results.py"))
    made = "\n".join(script["known_results"]())
    assert made in (ROOT / "docs" / "results" / "policy-results.md").read_text(encoding="utf-8")
