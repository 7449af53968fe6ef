"""What is fuzzed: for each kind of input the valid ones to start from, and how one is read."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from calibrate.importers.generic import read_samples
from experiments.sweep.journal import opened
from fidelity.engine_runs import read_engine_runs
from fidelity.parity import first_difference, read_recording
from fidelity.request_runs import read_request_run
from servetwin.cli import main
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.cost.calibrated import load_profile
from simcore.hardware import load_accelerator
from simcore.models import load_model
from simcore.output.run_folder import read_run_folder, write_run_folder
from simcore.scenario import override, parse_scenario, read_scenario
from simcore.workload.traces import read_trace

SCENARIO = b"""model: smollm2-135m
engine: vllm-v1
seed: 3
cluster: {accelerator: l4, replicas: 2, routing: round-robin}
memory: {num_gpu_blocks: 500, prefix_caching: true, tiers: [{name: cpu, capacity_gb: 2.0}]}
scheduler:
  ordering: {name: sjf, predictor: {name: class-mean}}
  preemption: {mode: recompute, reserved_blocks: {0: 2}}
workload:
  requests: 20
  arrivals: {name: poisson, rate_per_s: 20}
  prompt_tokens: {name: uniform, low: 20, high: 90}
  output_tokens: {name: lognormal, median: 10, sigma: 0.5, max: 40}
slo: {ttft_s: {p99: 2.0}}
measurement: {warmup_s: 0.1, end_s: 9.0}
"""
_TRACE = b"arrival_s,prompt_tokens,output_tokens,tenant\n0,20,5,a\n0.5,30,6,b\n1.25,40,7,a\n"
_LINES = b'{"timestamp": 0, "input_length": 20, "output_length": 5, "hash_ids": [1]}\n' * 3
_VLLM_BENCH = (
    b'{"request_rate": 10.0, "input_lens": [300, 30], "output_lens": [100, 9], "start_times": [0.5, 0.7], '
    b'"ttfts": [0.02, 0.021], "itls": [[0.007], [0.007]]}'
)
_VLLM_BENCH_RATE = b'{"request_rate": 10.0, "input_lens": [300, 30], "output_lens": [100, 9]}'
_GUIDELLM = (
    b'{"benchmarks": [{"requests": {"successful": [{"prompt_tokens": 300, "output_tokens": 100, '
    b'"request_start_time": 1766000000.0}]}}]}'
)
_CONVERSATIONS = b'[{"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]}]'
_RECORDING = (
    b'{"engine": {"name": "vllm", "version": "0.33.0", "cut_after": 200}, '
    b'"config": {"block_size": 16, "num_blocks": 400, "max_num_batched_tokens": 64, "max_num_seqs": 1, '
    b'"max_model_len": 512, "policy": "priority", "prefix_caching": true}, '
    b'"requests": [{"id": 1, "arrive_step": 0, "prompt": [[1000, 16]], "output": 1, "priority": 0}, '
    b'{"id": 0, "arrive_step": 1, "prompt": [[2000, 16]], "output": 1, "priority": 0}], '
    b'"steps": [{"scheduled": {"1": 16}, "preempted": [], "finished": [1], "free_blocks_after": 399}, '
    b'{"scheduled": {"0": 16}, "preempted": [], "finished": [0], "free_blocks_after": 399}]}'
)
_JOURNAL = b'{"fingerprint": "ab", "rows": [{"rate_per_s": 1.0}]}\n' * 3
_CONFIG = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128, "vocab_size": 1000,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32},
}  # fmt: skip
_META = {
    "model": "meta-llama/Llama-3.1-8B", "vllm_version": "0.19.0", "started_at": "2026-01-01T00:00:00",
    "engine_kwargs": {"max_num_seqs": 8}, "kv_cache": {"num_gpu_blocks": 2588, "block_size": 16},
}  # fmt: skip
_HARDWARE = {"nodes": [{"instances": [{"hardware": "RTX4090"}]}], "link_bw": 25.0}
_REQUEST = {
    "input_toks": 100, "output_toks": 11, "arrival_time": 1000.0, "queued_ts": 50.0, "scheduled_ts": 50.0,
    "first_token_ts": 50.5, "last_token_ts": 51.5,
}  # fmt: skip
_SERIES = b"t,running,waiting,kv_cache_pct\n1.0,1,0,10\n2.0,1,1,95\n"
_ENGINE_RUN = {
    "id": "1", "silicon_data_source": "db-dump/2026-04-27; silicon_concurrency=4; measured=2026-01-01",
    "backend": "vllm",
    "backend_version": "0.19.0", "model_path": "meta-llama/Llama-3.1-8B", "system": "h100_sxm", "precision": "bf16",
    "mode": "agg", "isl": "1024", "osl": "128", "gemm_quant_mode": "bfloat16", "moe_quant_mode": "bfloat16",
    "batch_size": "4", "tp_size": "1", "pp_size": "1", "attention_dp_size": "1", "moe_tp_size": "1", "moe_ep_size": "1",
    "silicon_ttft_ms": "100", "silicon_tpot_ms": "20",
}  # fmt: skip
_SAMPLES = (
    b"kind,accelerator,engine,version,dtype,tokens_multiple_of,tokens,n,k,latency_s\n"
    + b"gemm,h100-sxm,vllm,0.19.0,bf16,1,128,4096,4096,0.0001\n" * 2
)


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input: valid ones, and how one, in an empty folder, is read; what is wrong is a ``ServetwinError``."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes, Path], object]


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def written(content: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(content)
        return read(path)

    return written


def _profile(part: str) -> Callable[[bytes, Path], object]:
    def written(content: bytes, folder: Path) -> object:
        for name, text in _PROFILE.items():
            (folder / name).write_bytes(content if name == part else text)
        return load_profile("rtx-4090", str(folder))

    return written


def _shortened_profile() -> dict[str, bytes]:
    """A shipped profile with few rows in each table, so that reading one is quick."""
    source = files("hardware_profiles") / "rtx-4090" / "vllm-0.19.0"
    tables = [entry for entry in source.iterdir() if entry.name.endswith(".csv")]
    found = {entry.name: b"\n".join(entry.read_bytes().splitlines()[:8]) for entry in tables}
    return found | {"profile.yaml": (source / "profile.yaml").read_bytes()}


_PROFILE = _shortened_profile()


def _measured(part: str) -> Callable[[bytes, Path], object]:
    def written(content: bytes, folder: Path) -> object:
        for name, text in _RUN.items():
            (folder / name).write_bytes(content if name == part else text)
        return read_request_run(folder)

    return written


_RUN = {
    "meta.json": json.dumps(_META).encode(),
    "config.json": json.dumps(_HARDWARE).encode(),
    "requests.jsonl": b"\n".join([json.dumps(_REQUEST).encode()] * 2),
    "timeseries.csv": _SERIES,
}


def _run_files() -> dict[str, bytes]:
    """A small run folder, file by file, without its report."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_bytes(SCENARIO)
        write_run_folder(_prepared(path).run(), Path(folder) / "run")
        return {file.name: file.read_bytes() for file in sorted((Path(folder) / "run").iterdir())}


def _trace_table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    written = io.BytesIO()
    columns = {"arrival_s": [0.0, 0.5, 1.25], "prompt_tokens": [20, 30, 40], "output_tokens": [5, 6, 7]}
    parquet.write_table(pa.table(columns), written)
    return written.getvalue()


def _run_folder(content: bytes, folder: Path) -> object:
    for name, text in _KEPT_RUN.items():
        (folder / name).write_bytes(content if name == "requests.parquet" else text)
    return read_run_folder(folder)


def _compared(path: Path) -> object:
    return first_difference(read_recording(path))


def _continued(path: Path) -> object:
    with opened(path) as journal:
        return journal.rows


def _command_line(content: bytes, folder: Path) -> None:
    arguments = content.decode("utf-8", "surrogateescape").split("\n")
    said, told = io.StringIO(), io.StringIO()
    (folder / "s.yaml").write_bytes(SCENARIO)
    named = [str(folder / "s.yaml") if text == "s.yaml" else text for text in arguments]
    with patch("sys.argv", ["servetwin", *named]), redirect_stdout(said), redirect_stderr(told):
        try:
            main()
        except SystemExit as ended:
            if ended.code not in (None, 0, 1, 2):
                raise AssertionError(f"exit code {ended.code}") from None
    if "Traceback" in told.getvalue() or "\x1b" in said.getvalue() + told.getvalue():
        raise AssertionError("a trace or a control sequence was printed")


def _assigned(content: bytes, folder: Path) -> object:
    document = read_scenario(_written(folder))
    return parse_scenario(override(document, content.decode("utf-8", "replace").split("\n")))


def _written(folder: Path) -> Path:
    path = folder / "s.yaml"
    path.write_bytes(SCENARIO)
    return path


def _engine_run() -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, _ENGINE_RUN)
    writer.writeheader()
    writer.writerows([_ENGINE_RUN] * 2)
    return text.getvalue().encode()


def _safetensors() -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 16


def _read_safetensors(path: Path) -> None:
    from live.weights.safetensors_file import SafetensorsFile

    SafetensorsFile(path)


def _read_gguf(path: Path) -> None:
    from live.weights.gguf_file import GgufFile

    GgufFile(path)


def _gguf() -> bytes:
    text = b"\x14\0\0\0\0\0\0\0general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama"
    tensor = b"\x01\0\0\0\0\0\0\0w\x01\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    head = b"GGUF\x03\0\0\0" + (1).to_bytes(8, "little") * 2 + text + tensor
    return head + b"\0" * (-len(head) % 32) + b"\0" * 16


def _prepared(path: Path) -> Simulation:
    return Simulation.prepare(read_scenario(path), path.parent)


_COMMANDS = (
    "explain\ns.yaml\n--shape\n64x128+32@64",
    "memory\ns.yaml\n--set\ncluster.replicas=2",
    "hardware\nh100-sxm",
    "models\n--json",
    "policies\nordering",
    "trace\nlist",
    "run\ns.yaml\n--json\n--set\nworkload.requests=3",
)

_KEPT_RUN = _run_files()

TARGETS: dict[str, Target] = {
    "scenario": Target((SCENARIO,), _file("s.yaml", _prepared)),
    "assignment": Target(
        (b"seed=1\ncluster.replicas=2", b"workload.arrivals={name: constant, rate_per_s: 2}"), _assigned
    ),
    "trace-csv": Target((_TRACE,), _file("t.csv", read_trace)),
    "trace-jsonl": Target((_LINES,), _file("t.jsonl", read_trace)),
    "trace-gzip": Target((gzip.compress(_TRACE, mtime=0),), _file("t.csv.gz", read_trace)),
    "trace-parquet": Target((_trace_table(),), _file("t.parquet", read_trace)),
    "trace-json": Target((_VLLM_BENCH, _VLLM_BENCH_RATE, _GUIDELLM, _CONVERSATIONS), _file("t.json", read_trace)),
    "recording": Target((_RECORDING,), _file("recording.json", _compared)),
    "run-folder": Target((_KEPT_RUN["requests.parquet"],), _run_folder),
    "sweep-journal": Target((_JOURNAL,), _file("cells.jsonl", _continued)),
    "config": Target((json.dumps(_CONFIG).encode(),), _file("config.json", lambda path: load_model(str(path)))),
    "hardware": Target(
        ((files("hardware_profiles") / "l4.yaml").read_bytes(),),
        _file("mine.yaml", lambda path: load_accelerator(str(path))),
    ),
    "profile-document": Target((_PROFILE["profile.yaml"],), _profile("profile.yaml")),
    "profile-table": Target((_PROFILE["gemm.csv"],), _profile("gemm.csv")),
    "measured-meta": Target((_RUN["meta.json"],), _measured("meta.json")),
    "measured-requests": Target((_RUN["requests.jsonl"],), _measured("requests.jsonl")),
    "measured-series": Target((_SERIES,), _measured("timeseries.csv")),
    "engine-runs": Target((_engine_run(),), _file("runs.csv", read_engine_runs)),
    "samples": Target((_SAMPLES,), _file("samples.csv", read_samples)),
    "command-line": Target(tuple(text.encode() for text in _COMMANDS), _command_line),
    "safetensors": Target((_safetensors(),), _file("model.safetensors", _read_safetensors)),
    "gguf": Target((_gguf(),), _file("model.gguf", _read_gguf)),
}
"""A kind's name, and what there is to try of it."""

__all__ = ["TARGETS", "ServetwinError", "Target"]
