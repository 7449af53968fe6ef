import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.kernels import MODULES, cases_of
from benchmarks.kernels.__main__ import main
from kernels.launch import interpreted

pytestmark = pytest.mark.skipif(not interpreted(), reason="a GPU runs the whole benchmark")


def test_the_script_runs_every_module_at_toy_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--toy", "--out", str(tmp_path)])
    folder = tmp_path / "interpreter"
    summary = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert summary["machine"]["gpu"] == "none: Triton's interpreter"
    assert summary["missing"] == []
    timed = {row["kernel"] for row in summary["results"]}
    assert timed == {case.kernel for module in MODULES for case in cases_of(module, toy=True)}
    assert timed >= {"cublas", "gemm", "silu_mul", "rotate_and_write", "verify_drafts"}
    assert [row["title"] for row in summary["ratios"]] == ["decodes and a chunk in one launch: times two launches"]
    for file in folder.glob("*.parquet"):
        assert set(pq.read_table(file)["accelerator"].to_pylist()) == {"interpreter"}
    out = capsys.readouterr().out
    assert "moe silu fp16 tokens=20" in out
    assert str(folder / "gemm.parquet") in out


def test_an_unknown_module_is_refused() -> None:
    with pytest.raises(SystemExit, match="no benchmark module is called gem; did you mean gemm"):
        main(["gem", "--toy"])
