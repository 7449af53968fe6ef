"""A folder of one measured run, small enough to know by heart."""

import json
from pathlib import Path

LINES = [
    {"request_id": "a", "input_toks": 100, "output_toks": 11, "arrival_time": 1000.0, "queued_ts": 50.0},
    {"request_id": "b", "input_toks": 200, "output_toks": 21, "arrival_time": 1001.0, "queued_ts": 51.5},
]
TIMES = [
    {"scheduled_ts": 50.0, "first_token_ts": 50.5, "last_token_ts": 51.5},
    {"scheduled_ts": 53.0, "first_token_ts": 53.5, "last_token_ts": 55.0},
]
META = {
    "model": "meta-llama/Llama-3.1-8B",
    "vllm_version": "0.19.0",
    "engine_kwargs": {"max_num_seqs": 8, "max_num_batched_tokens": 2048, "dtype": "bfloat16"},
    "kv_cache": {"num_gpu_blocks": 2588, "block_size": 16},
}
CONFIG = {"nodes": [{"instances": [{"hardware": "RTX4090"}]}]}
SERIES = "t,running,waiting,kv_cache_pct\n1.0,1,0,10\n2.0,1,1,95\n3.0,1,1,96\n4.0,1,0,20\n5.0,0,0,0\n"


def write_run(folder: Path, **meta: object) -> Path:
    """Write the run, its meta changed as told, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({**META, **meta}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    lines = [json.dumps({**line, **times}) for line, times in zip(LINES, TIMES, strict=True)]
    (folder / "requests.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "timeseries.csv").write_text(SERIES)
    return folder
