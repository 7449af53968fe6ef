"""``servetwin explain``, as typed."""

import json


def test_the_table_has_operators_and_sources(command, scenario_file):
    ended = command("explain", scenario_file)
    assert (ended.code, ended.err) == (0, "")
    for said in ("qkv_projection", "decode_attention", "prefill_attention", "host", "MFU", "MBU", "roofline"):
        assert said in ended.out


def test_json_adds_up(command, scenario_file):
    (step,) = json.loads(command("explain", scenario_file, "--shape", "8x100+32", "--json").out)
    assert step["shape"] == "8x100+32"
    assert abs(sum(operator["seconds"] for operator in step["operators"]) - step["seconds"]) < 1e-12
    assert 0 < step["mbu"] < 1


def test_a_page_is_written(command, scenario_file, tmp_path):
    page = tmp_path / "step.html"
    assert command("explain", scenario_file, "--shape", "8x100", "--out", page).code == 0
    text = page.read_text()
    assert "Roofline of 8x100" in text
    assert "decode_attention" in text


def test_a_page_has_no_dot_for_a_chunk_that_adds_nothing_to_the_decodes_beside_it(command, scenario_file, tmp_path):
    page = tmp_path / "step.html"
    changes = ("--set", "model=llama-3.1-8b", "--set", "cluster.accelerator=rtx-4090", "--set", "pricing.profile=auto")
    asked = ("explain", scenario_file, "--shape", "1x1000+3", *changes)
    (step,) = json.loads(command(*asked, "--json").out)
    assert 0.0 in [operator["seconds"] for operator in step["operators"]]
    assert command(*asked, "--out", page).code == 0
    assert "Roofline of 1x1000+3" in page.read_text()


def test_whose_kernels_price_a_step_is_said(command, scenario_file, tmp_path):
    def asked(*changes):
        return ("explain", scenario_file, "--shape", "64", *(part for change in changes for part in ("--set", change)))

    latent = asked("model=deepseek-v3", "cluster.accelerator=h200-sxm", "cluster.tensor_parallel=8", "engine=vllm-v1")
    sentence = "Kernels of h200-sxm/vllm-0.24.0, mla generation of h200-sxm/sglang-0.5.14"
    assert sentence in " ".join(command(*latent, "--set", "pricing.profile=auto").out.split())
    other = asked("model=llama-3.1-8b", "cluster.accelerator=l40s", "precision.weights=nvfp4", "pricing.profile=auto")
    (step,) = json.loads(command(*other, "--json").out)
    assert (step["profile"], step["fallback_profiles"], step["unmeasured"]) == (
        "l40s/vllm-0.24.0",
        {},
        ["GEMMs in nvfp4"],
    )
    assert command(*other, "--out", tmp_path / "step.html").code == 0
    assert "It has no measurements of GEMMs in nvfp4." in (tmp_path / "step.html").read_text()
    roofline = asked("pricing.profile=roofline")
    (step,) = json.loads(command(*roofline, "--json").out)
    assert (step["profile"], step["unmeasured"]) == (None, [])
    assert command(*roofline).out.startswith("No kernel profile: all kernels are priced by roofline.")


def test_bad_shapes_end_in_one_sentence(command, scenario_file, tmp_path):
    ended = command("explain", scenario_file, "--shape", "8y100")
    assert ended.code == 2
    assert ended.err == (
        "servetwin: --shape is '8y100', expected decodes and chunks such as 64x2048, 512@1024 or 64x2048+512.\n"
    )
    ended = command("explain", scenario_file, "--shape", "8x99999999", "--out", tmp_path / "no.html")
    assert ended.code == 2
    assert "expected requests of at most" in ended.err
    assert not (tmp_path / "no.html").exists()


def test_a_shape_of_too_many_digits_is_no_shape(command, scenario_file):
    ended = command("explain", scenario_file, "--shape", "9" * 5000 + "x1")
    assert ended.code == 2
    assert ended.err.startswith("servetwin: --shape is '9999")
