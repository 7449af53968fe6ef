"""Whatever a user gets wrong: one clear sentence on standard error, exit code 2, and nothing written."""

import json

import pytest

from simcore.models import preset_names

TRACE = "arrival_s,prompt_tokens,output_tokens\n0,10,20\n1,30,40\n9,50,60\n"
BROKEN = {
    "negative.csv": TRACE.replace("30", "-30"),
    "nan.csv": TRACE.replace("30", "nan"),
    "text.csv": TRACE.replace("30", "many"),
    "short.csv": TRACE.replace("1,30,40", "1,30"),
    "unsorted.csv": TRACE.replace("9,50", "0.5,50"),
    "headeronly.csv": "arrival_s,prompt_tokens,output_tokens\n",
    "empty.csv": "",
    "good.csv": TRACE,
    "lengths.csv": "prompt_tokens,output_tokens\n1,2\n",
    "broken.jsonl": '{"timestamp": 0, "input_length": 5, "output_length": 5}\n{"timestamp": \n',
    "broken.csv.gz": "no gzip",
    "broken.parquet": "no parquet",
    "config.json": '{"architectures": ["LlamaForCausalLM"]}',
    "other.json": '{"architectures": ["BertModel"]}',
    "no.json": "{",
    "gpu.yaml": "datasheet: 5\n",
    "twofold.json": '{"architectures": ["LlamaForCausalLM"], "model_type": "qwen2"}',
    "far.csv": TRACE.replace("0,10", "-9e9,10").replace("9,50", "9e9,50"),
    "digits.csv": TRACE.replace("10", "9" * 5000),
}
FIXED = "prompt_tokens: {name: fixed, tokens: 5}, output_tokens: {name: fixed, tokens: 5}"
POISSON = "arrivals: {name: poisson, rate_per_s: 3}"


@pytest.fixture
def refusal(command, scenario_file, tmp_path, monkeypatch):
    """The sentence with which a run is refused; checks all that every refusal has in common."""
    monkeypatch.chdir(tmp_path)
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)

    def refuse(*changes, scenario=scenario_file):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        settings = [part for change in changes for part in ("--set", change)]
        ended = command("run", scenario, "--out", tmp_path / "new" / "out", *settings)
        assert (ended.code, ended.out) == (2, "")
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        start, sentence = ended.err[: len("servetwin: ")], ended.err[len("servetwin: ") :]
        assert start == "servetwin: "
        assert sentence.count("\n") == 1
        assert sentence.endswith((".\n", "?\n"))
        return sentence.strip().replace(f"{tmp_path}/", "")

    return refuse


NAMES = [
    ("model=llama-3.1-8", "model is 'llama-3.1-8', expected one of deepseek-v2-lite,", "'llama-3.1-8b'"),
    ("model=meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B: no such file or folder; the model nearest", None),
    ("cluster.accelerator=h100", "cluster.accelerator is 'h100', expected one of a100-pcie-80gb,", "'h100-sxm'"),
    (
        "engine=vlm-v1",
        "engine is 'vlm-v1', expected one of hf-static, llama.cpp, orca, servetwin-live, sglang, tgi, trtllm, vllm-v1.",
        "'vllm-v1'",
    ),
    ("scheduler.ordering=fcsf", "scheduler.ordering.name is 'fcsf', expected one of", "'fcfs'"),
    ("scheduler.batching.name=chunked", "scheduler.batching.name is 'chunked', expected one of", "'chunked-prefill'"),
    ("scheduler.preemption.victim=lates", "scheduler.preemption.victim.name is 'lates', expected one of", "'latest'"),
    ("scheduler.preemption.mode=recmpute", "scheduler.preemption.mode is 'recmpute', expected one of", "'recompute'"),
    ("cluster.routing=robin", "cluster.routing.name is 'robin', expected one of", "'round-robin'"),
    ("precision.weights=bf-16", "precision.weights is 'bf-16', expected one of auto, bf16", "'bf16'"),
    ("workload.arrivals.name=poison", "workload.arrivals.name is 'poison', expected one of", "'poisson'"),
    ("workload.prompt_tokens.name=unifrm", "workload.prompt_tokens.name is 'unifrm', expected one of", "'uniform'"),
    ("workload={trace: good.csv, format: azure}", "workload.format is 'azure', expected one of", "'azure2023'"),
    ("clster.replicas=2", "clster is an unknown field, expected one of adapters,", "'cluster'"),
    ("cluster.replica=2", "cluster.replica is an unknown field, expected one of accelerator,", "'replicas'"),
    (
        "scheduler.orderng=fcfs",
        "scheduler.orderng is an unknown field, expected one of admission, batching,",
        "'ordering'",
    ),
    ("scheduler.preemption.victm=latest", "scheduler.preemption.victm is an unknown field", "'victim'"),
    (
        "scheduler.batching.max_batched_token=1",
        "scheduler.batching.max_batched_token is an unknown parameter, expected a parameter of chunked-prefill:",
        "'max_batched_tokens'",
    ),
    ("scheduler.ordering.x=1", "scheduler.ordering.x is an unknown parameter, expected nothing, as fcfs has", None),
    ("slo.ttft.p99=2", "slo.ttft is an unknown field, expected one of e2e_s, tpot_s, ttft_s.", "'ttft_s'"),
    ("slo.ttft_s.p98=2", "slo.ttft_s.p98 is an unknown field, expected one of p50, p90, p95, p99, p999.", "'p99'"),
    ("workload.request=5", "workload.request is an unknown field, expected one of arrivals,", "'requests'"),
    ("workload.arrivals.rate=5", "workload.arrivals.rate is an unknown field, expected one of", "'rate_per_s'"),
    ("workload.prompt_tokens.hig=5", "workload.prompt_tokens.hig is an unknown field, expected one of", "'high'"),
    ("workload={trce: good.csv}", "workload.trce is an unknown field, expected one of block_tokens,", "'trace'"),
    ("workload={trace: good.csv, rate_scal: 2}", "workload.rate_scal is an unknown field", "'rate_scale'"),
    ("workload={trace: good.csv, columns: {prompt: x}}", "workload.columns.prompt is an unknown", "'prompt_tokens'"),
    (f"workload={{requests: 5, {POISSON}, lengths: {{name: empirical, fil: x}}}}", "workload.lengths.fil is", "'file'"),
    ("measurement.warmup=5", "measurement.warmup is an unknown field, expected one of end_s, warmup_s.", "'warmup_s'"),
    ("memory.blocks=5", "memory.blocks is an unknown field, expected one of block_size_tokens,", None),
    ("1=2", "1 is an unknown field, expected one of adapters,", None),
]


@pytest.mark.parametrize(("change", "said", "nearest"), NAMES)
def test_unknown_names_and_fields(refusal, change, said, nearest):
    sentence = refusal(change)
    assert sentence.startswith(said)
    if nearest is not None:
        assert sentence.endswith(f"Did you mean {nearest}?" if "Did you" in sentence else f"is {nearest}.")


VALUES = [
    (
        "pricing.expert_kernels=marlin",
        "pricing.expert_kernels is 'marlin', expected 'auto', since smollm2-135m has no experts.",
    ),
    (
        "scheduler.preemption={mode: recompute, inherit_priority: true}",
        "scheduler.preemption.inherit_priority is true, expected false, except with mode 'wait': in other modes memory",
    ),
    (
        "scheduler.ordering={name: two-level, inner: vtc}",
        "scheduler.ordering.inner is a VirtualTokenCounter, expected an ordering that sorts by a key alone.",
    ),
    (
        "scheduler.ordering={name: vtc, weights: {a: -1}}",
        "scheduler.ordering.weights.a is -1.0, expected a number from 1e-06 to 1e+06.",
    ),
    (
        "scheduler.batching={name: slo-feedback, min_batched_tokens: 9000}",
        "scheduler.batching.min_batched_tokens is 9000, expected at most 8192.",
    ),
    (
        "scheduler.ordering={name: credit, credits: {a: -1}}",
        "scheduler.ordering.credits.a is -1.0, expected a number from 0 to 1e+15.",
    ),
    ("cluster.replicas=0", "cluster.replicas is 0, expected a whole number of at least 1"),
    ("cluster.replicas=1.5", "cluster.replicas is 1.5, expected a whole number"),
    ("cluster.replicas=two", "cluster.replicas is 'two', expected a whole number"),
    ("cluster.replicas=true", "cluster.replicas is true, expected a whole number"),
    ("cluster.replicas=", "cluster.replicas is empty, expected a whole number"),
    ("cluster.replicas=[2]", "cluster.replicas is [2], expected a whole number"),
    ("cluster.replicas=99999999999999999999", "cluster.replicas is 99999999999999999999, expected a whole number"),
    ("cluster.tensor_parallel=2", "cluster.tensor_parallel is 2, expected a divisor of the 9 query heads"),
    ("cluster.tensor_parallel=9", "cluster.tensor_parallel is 9, expected at most 8"),
    ("cluster.price_usd_per_h=-1", "cluster.price_usd_per_h is -1, expected a number of at least 0"),
    ("cluster=l4", "cluster is 'l4', expected a mapping of accelerator, replicas,"),
    (
        "engine=5",
        "engine is 5, expected one of hf-static, llama.cpp, orca, servetwin-live, sglang, tgi, trtllm, vllm-v1.",
    ),
    (
        "engine={name: vllm-v1}",
        "engine is {'name': 'vllm-v1'}, expected one of hf-static, llama.cpp, orca, servetwin-live, sglang, ",
    ),
    ("model=", "model is empty, expected text"),
    ("model=''", "model is '', expected text that is not empty."),
    ("model=3", "model is 3, expected text"),
    ("seed=-1", "seed is -1, expected a whole number of at least 0."),
    ("max_context_tokens=1e9", "max_context_tokens is 1000000000, expected at most"),
    ("memory.num_gpu_blocks=1", "memory.num_gpu_blocks is 1, expected more than the 1 that the engine keeps aside."),
    ("memory.gpu_memory_utilization=90", "memory.gpu_memory_utilization is 90, expected a number of at least 0.001"),
    (
        "memory.block_size_tokens=100000",
        "memory.block_size_tokens is 100000, expected a whole number of at least 1 and",
    ),
    ("scheduler=", "scheduler is empty, expected a mapping of admission, ordering, batching,"),
    ("scheduler=fcfs", "scheduler is 'fcfs', expected a mapping of admission, ordering, batching,"),
    ("scheduler.ordering=[fcfs]", "scheduler.ordering is ['fcfs'], expected the name of a policy, or a mapping"),
    ("cluster.routing={}", "cluster.routing.name is missing, expected one of"),
    ("scheduler.batching.max_batched_tokens=0", "scheduler.batching.max_batched_tokens is 0, expected a whole number"),
    (
        "scheduler.batching.max_batched_tokens=.nan",
        "max_batched_tokens is '.nan', expected a value in YAML",
    ),
    ("scheduler.reserve_whole_prompt=1", "scheduler.reserve_whole_prompt is 1, expected true or false."),
    ("host.step_s=-1", "host.step_s is -1, expected a number of at least 0 and of at most 3600."),
    ("efficiency.matmul_compute=1.5", "efficiency.matmul_compute is 1.5, expected a number of at least 0.001"),
    ("slo=", "slo is empty, expected a mapping of ttft_s, tpot_s, e2e_s."),
    ("slo.ttft_s=2", "slo.ttft_s is 2, expected a mapping of p50, p90, p95, p99, p999."),
    ("slo.ttft_s.p99=2s", "slo.ttft_s.p99 is '2s', expected a number of at least 1e-09"),
    ("slo.ttft_s.p99=.nan", "--set slo.ttft_s.p99 is '.nan', expected a value in YAML ('.nan' is no finite number)."),
    ("measurement={warmup_s: 5, end_s: 5}", "measurement.end_s is 5, expected more than the warmup_s of 5."),
    ("workload=", "workload is empty, expected a mapping with trace, or with arrivals, lengths and a number of"),
    ("workload={}", "workload.arrivals is missing, expected a mapping whose name is one of at-once, closed-loop,"),
    ("workload.requests=0", "workload.requests is 0, expected a whole number of at least 1"),
    ("workload.requests=", "workload is a mapping of arrivals, prompt_tokens, output_tokens, expected exactly one of"),
    ("workload.duration_s=5", "expected exactly one of requests and duration_s."),
    ("workload.arrivals=poisson", "workload.arrivals is 'poisson', expected a mapping whose name is one of"),
    ("workload.arrivals.rate_per_s=-1", "workload.arrivals.rate_per_s is -1, expected a number greater than 0."),
    ("workload.arrivals.rate_per_s=0", "workload.arrivals.rate_per_s is 0, expected a number greater than 0."),
    (
        "workload.arrivals.rate_per_s=.nan",
        "workload.arrivals.rate_per_s is '.nan', expected a value in YAML",
    ),
    (
        "workload.arrivals.rate_per_s=.inf",
        "workload.arrivals.rate_per_s is '.inf', expected a value in YAML",
    ),
    ("workload.arrivals.rate_per_s=true", "workload.arrivals.rate_per_s is true, expected a number greater than 0."),
    ("workload.arrivals.rate_per_s=fast", "workload.arrivals.rate_per_s is 'fast', expected a number greater than 0."),
    ("workload.arrivals.rate_per_s=1e-300", "workload.requests is 20, expected so few that all arrive within 291"),
    ("workload.output_tokens.tokens=-5", "workload.output_tokens.tokens is -5, expected a whole number of at least 1"),
    (
        "workload.output_tokens.tokens=.nan",
        "workload.output_tokens.tokens is '.nan', expected a value in",
    ),
    ("workload.output_tokens.tokens=true", "workload.output_tokens.tokens is true, expected a whole number"),
    ("workload.output_tokens.tokens=long", "workload.output_tokens.tokens is 'long', expected a whole number"),
    (
        "workload.prompt_tokens.low=100",
        "workload.prompt_tokens is a mapping of name, low, high, expected low no greater",
    ),
    (f"workload={{requests: 5, {POISSON}}}", "expected either prompt_tokens and output_tokens, or lengths."),
    (f"workload={{duration_s: 1e-9, {POISSON}, {FIXED}}}", "workload.duration_s is 1e-09, expected long enough"),
    ("workload={trace: good.csv, window_s: [5, 1]}", "workload.window_s is [5, 1], expected a start before its end."),
    ("workload={trace: good.csv, window_s: [5]}", "workload.window_s is [5], expected two times in seconds,"),
    ("workload={trace: good.csv, window_s: [10, 20]}", "expected a window with a request in it; the last one"),
    ("workload={trace: good.csv, requests: 0}", "workload.requests is 0, expected a whole number of at least 1"),
    ("workload={trace: good.csv, rate_scale: 0}", "workload.rate_scale is 0, expected a number greater than 0."),
    ("workload={trace: good.csv, rate_scale: 1e-300}", "workload.rate_scale is 1e-300, expected a scale at which all"),
    ("seed", "--set is 'seed', expected KEY=VALUE, such as"),
    ("a." * 1000 + "b=1", "expected a key of at most 20 levels."),
    (f"slo={'{a: ' * 200}1{'}' * 200}", "expected a value in YAML (it is nested too deeply, beyond 50 levels)."),
    (f"slo={'[' * 5000}", "it is nested too deeply"),
    (f"seed={'9' * 5000}", "expected a value in YAML (the value '9999"),
    ("seed=&a [*a]", "expected a value in YAML ('a' stands for a value that would hold itself)."),
    ("seed=[1", "--set seed is '[1', expected a value in YAML (expected ',' or ']'"),
    (
        "seed=!!int x",
        "expected a value in YAML (the tag 'tag:yaml.org,2002:int' stands where",
    ),
]


@pytest.mark.parametrize(("change", "said"), VALUES)
def test_wrong_values(refusal, change, said):
    assert said in refusal(change)


FILES = [
    ("workload={trace: nowhere.csv}", "nowhere.csv: no such file."),
    ("workload={trace: negative.csv}", "negative.csv, line 3: prompt_tokens is '-30', expected a whole number"),
    ("workload={trace: nan.csv}", "nan.csv, line 3: prompt_tokens is 'nan', expected a whole number of at least 1."),
    ("workload={trace: text.csv}", "text.csv, line 3: prompt_tokens is 'many', expected a whole number"),
    ("workload={trace: short.csv}", "short.csv, line 3: has 2 fields, expected 3."),
    ("workload={trace: unsorted.csv}", "unsorted.csv, line 4: arrival_s is earlier than in the row above ('sort' puts"),
    ("workload={trace: headeronly.csv}", "headeronly.csv: holds no request."),
    ("workload={trace: empty.csv}", "empty.csv: is empty, expected a line of column names."),
    ("workload={trace: lengths.csv}", "lengths.csv: has no arrival times, expected them"),
    ("workload={trace: broken.jsonl}", "broken.jsonl, line 2: is not valid JSON"),
    ("workload={trace: broken.csv.gz}", "broken.csv.gz: is a broken gzip file (it has no gzip header)."),
    ("workload={trace: broken.parquet}", "broken.parquet: is not a Parquet file."),
    ("workload={trace: small.yaml}", "small.yaml: is of no known kind, expected a name that ends in .csv,"),
    ("workload={trace: good.csv, columns: {prompt_tokens: prompts}}", "good.csv: has no column 'prompts'"),
    ("workload={trace: good.csv, columns: {arrival: arrived_s}}", "good.csv: has no column 'arrived_s' of format csv "),
    (f"workload={{requests: 5, {POISSON}, lengths: {{name: empirical, file: no.csv}}}}", "no.csv: no such file."),
    ("model=nowhere.json", "nowhere.json: no such file."),
    ("model=config.json", "config.json: "),
    ("model=other.json", "other.json: architectures is 'BertModel', expected a supported one ("),
    ("model=no.json", "no.json, line 1: not valid JSON ("),
    ("cluster.accelerator=nowhere.yaml", "nowhere.yaml: no such file."),
    ("cluster.accelerator=gpu.yaml", "gpu.yaml: datasheet is 5, expected a mapping of title, vendor,"),
    (
        "model=twofold.json",
        "twofold.json: model_type is 'qwen2', expected llama, as architectures is LlamaForCausalLM.",
    ),
    ("workload={trace: far.csv}", "far.csv: has arrivals more than 292 years apart, the most that a clock holds."),
    ("workload={trace: digits.csv}", f"digits.csv, line 2: prompt_tokens is '{'9' * 79}..., expected a whole number"),
    ('workload={trace: "a\\0.csv"}', r"a\x00.csv: cannot be a path, as it holds a character that no path has."),
    ('workload={trace: "a\\nb.csv"}', r"a\nb.csv: no such file."),
    (f"workload={{trace: {'y' * 300}.csv}}", "yyy"),
    (
        f'workload={{requests: 5, {POISSON}, lengths: {{name: empirical, file: "a\\0.csv"}}}}',
        r"a\x00.csv: cannot be a path",
    ),
    ('model="a\\0/b"', r"a\x00/b: cannot be a path"),
    (f"model={'y/' * 3000}", "y/y/"),
    ('cluster.accelerator="a\\0.yaml"', r"a\x00.yaml: cannot be a path"),
    (f"cluster.accelerator={'y' * 3000}.yaml", "yyy"),
]


@pytest.mark.parametrize(("change", "said"), FILES)
def test_wrong_files(refusal, change, said):
    assert refusal(change).startswith(said)


@pytest.mark.parametrize(
    ("model", "accelerator", "needed"),
    [("llama-3.1-70b", "h100-sxm", 143.8), ("llama-3.1-405b", "rtx-4090", 815.8), ("deepseek-v3", "l4", 675.3)],
)
def test_a_model_that_does_not_fit(refusal, model, accelerator, needed):
    sentence = refusal(f"model={model}", f"cluster.accelerator={accelerator}")
    assert sentence.startswith(f"{model} does not fit 1 {accelerator}: it needs {needed} GB (")
    assert sentence.endswith(" would do.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "bad.yaml: is empty, expected a mapping of model, cluster, workload and so on."),
        ("- model\n", "bad.yaml: holds no mapping, expected a mapping of model,"),
        ("just text", "bad.yaml: holds no mapping, expected a mapping of model,"),
        ("{}", "model is missing, expected text"),
        ("model: opt-13b\n", "cluster is missing, expected a mapping of accelerator,"),
        ("model: opt-13b\ncluster: {}\n", "cluster.accelerator is missing, expected text"),
        ("model: opt-13b\ncluster: {accelerator: l4}\n", "workload is missing, expected a mapping with trace, or with"),
        ("model: a\nmodel: b\n", "bad.yaml, line 2: not valid YAML: the key 'model' stands twice, here and in line 1."),
        ("model: a\n\tcluster: b\n", "bad.yaml, line 2: not valid YAML: a tab stands where only spaces may."),
        ("model: [a\n", "bad.yaml, line 2: not valid YAML: expected ',' or ']'"),
        (b"\x00\x01\xff", "bad.yaml, line 1: is not UTF-8 text, expected a YAML file."),
        ("model: \0", "bad.yaml: not valid YAML: it holds characters that no text has."),
    ],
)
def test_documents_that_are_none(refusal, tmp_path, text, said):
    path = tmp_path / "bad.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert refusal(scenario=path).startswith(said)


def test_references_that_multiply(refusal, tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    path = tmp_path / "many.yaml"
    path.write_text("\n".join(lines))
    assert refusal(scenario=path).startswith("many.yaml, line 6: not valid YAML: it is too large, with more")


def test_a_scenario_that_is_no_file(refusal, tmp_path):
    assert refusal(scenario=tmp_path / "none.yaml") == "none.yaml: no such file."
    (tmp_path / "folder").mkdir()
    assert refusal(scenario=tmp_path / "folder") == "folder: is a folder, expected a YAML file."
    assert refusal(scenario=".") == ".: is a folder, expected a YAML file."
    assert refusal(scenario="") == ".: is a folder, expected a YAML file."
    assert refusal(scenario="y" * 300).endswith(": cannot be read (File name too long).")


def test_unicode_names(refusal):
    assert refusal("model=modèle-☃").startswith("model is 'modèle-☃', expected one of ")


def test_an_unknown_model_lists_the_known_ones(refusal):
    assert ", ".join(sorted(preset_names())) in refusal("model=gpt-5-mini")


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("good.csv", "good.csv: is no folder, so a run cannot be written there."),
        ("good.csv/out", "good.csv/out: cannot be written, since "),
        (
            ".",
            ".: holds 'broken.csv.gz', which is no part of a run and which writing there would delete: choose another",
        ),
        ("y" * 300, "yyy"),
    ],
)
def test_places_that_are_no_run_folder(refusal, command, scenario_file, tmp_path, out, said):
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    ended = command("run", scenario_file, "--out", out)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"servetwin: {said}")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_existing_run_stays_as_it_is(command, scenario_file, tmp_path):
    out = tmp_path / "out"
    assert command("run", scenario_file, "--quiet", "--out", out).code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for wrong in (("--set", "seed=-1"), ("--strict",), ("--set", "workload.requests=0")):
        assert command("run", scenario_file, "--quiet", "--out", out, *wrong).code == 2
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "none.csv"), "none.csv: no such file."),
        (("describe", "y" * 300 + ".csv"), "yyy"),
        (("describe", "good.csv", "--plot", "y" * 300), "yyy"),
        (("describe", "good.csv", "--plot", "."), ".: is a folder, expected the name of a file"),
        (("describe", "good.csv", "--arrival", ""), "good.csv: has no column ''"),
        (("fetch", "burstgpt-1", "--out", "y" * 300), "yyy"),
        (("describe", "negative.csv"), "negative.csv, line 3: prompt_tokens is '-30', expected"),
        (("describe", "good.csv", "--format", "azure"), "format is 'azure', expected one of aiperf, auto, azure2023"),
        (("describe", "good.csv", "--arrival", "arrived_s"), "good.csv: has no column 'arrived_s'"),
        (("describe", "good.csv", "--plot", "none/x.html"), "none/x.html: cannot be written, since "),
        (("fetch", "azure-conv"), "trace is 'azure-conv', expected one of azure-code-2023,"),
        (("fetch", "burstgpt-1", "--out", "good.csv"), "good.csv: cannot be written (File exists)."),
    ],
)
def test_trace_commands(refusal, command, arguments, said):
    ended = command("trace", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"servetwin: {said}")
    assert ended.err.count("\n") == 1


def test_a_run_without_the_mark_of_its_writer_is_kept(command, scenario_file, tmp_path):
    """Runs of before there was such a mark, too; the answer says what to do."""
    out = tmp_path / "out"
    assert command("run", scenario_file, "--quiet", "--out", out).code == 0
    summary = json.loads((out / "summary.json").read_text())
    del summary["schema_version"]
    (out / "summary.json").write_text(json.dumps(summary))
    ended = command("run", scenario_file, "--quiet", "--out", out)
    assert ended.code == 2
    assert "holds 'summary.json', which servetwin did not write" in ended.err
    assert ended.err.endswith(": choose another folder, or move that away.\n")
    assert json.loads((out / "summary.json").read_text()) == summary
