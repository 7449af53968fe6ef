"""``servetwin trace cache`` from the command line."""

import json

import pytest

ROWS = [
    {"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]},
    {"timestamp": 5, "input_length": 1024, "output_length": 5, "hash_ids": [2, 3]},
    {"timestamp": 9, "input_length": 700, "output_length": 5, "hash_ids": [0, 4]},
]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_json_says_what_each_cache_finds(command, trace):
    ended = command("trace", "cache", trace, "--capacity-tokens", 1024, "--json")
    assert ended.code == 0
    facts = json.loads(ended.out)
    assert (facts["requests"], facts["prompt_tokens"], facts["block_tokens"]) == (3, 2724, 512)
    bounded, unbounded = facts["caches"]
    assert (bounded["capacity_tokens"], bounded["hit_tokens"]) == (1024, 0)
    assert (unbounded["capacity_tokens"], unbounded["hit_tokens"]) == (None, 512)
    assert unbounded["hit_rate"] == pytest.approx(512 / 2724)


def test_a_cache_larger_than_all_memory_is_as_good_as_an_unbounded_one(command, trace):
    ended = command("trace", "cache", trace, "--capacity-tokens", 10**26, "--json")
    huge, unbounded = json.loads(ended.out)["caches"]
    assert huge == unbounded | {"capacity_tokens": 10**26}


def test_a_radix_tree_gives_up_a_whole_prompt_where_hashes_give_up_its_end(command, trace):
    """Of the first prompt's two blocks one would do, but the tree knows them as one leaf."""
    found = {}
    for index in ("hash", "radix"):
        ended = command("trace", "cache", trace, "--capacity-tokens", "1.536e3", "--index", index, "--json")
        facts = json.loads(ended.out)
        assert facts["index"] == index
        bounded, unbounded = facts["caches"]
        assert (bounded["capacity_tokens"], unbounded["hit_tokens"]) == (1536, 512)
        found[index] = bounded["hit_tokens"]
    assert found == {"hash": 512, "radix": 0}


def test_the_table_names_policy_and_block(command, trace):
    ended = command("trace", "cache", trace, "--capacity-tokens", 2048, "--eviction", "clairvoyant")
    assert "2,048" in ended.out
    assert "unbounded" in ended.out
    assert "3 prompts, 2,724 tokens, blocks of 512 tokens, hash, clairvoyant" in ended.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--eviction", "lrv"), "--eviction is 'lrv', expected one of"),
        (("--capacity-tokens", "100"), "--capacity-tokens is 100, expected at least 512"),
        (
            ("--capacity-tokens", "1e3.5"),
            "--capacity-tokens is '1e3.5', expected a whole number such as 3000000",
        ),
        (("--capacity-tokens", "1024.5"), "--capacity-tokens is '1024.5', expected a whole number"),
        (("--capacity-tokens", "1e999999999"), "--capacity-tokens is '1e999999999', expected a whole number"),
        (("--capacity-tokens", "nan"), "--capacity-tokens is 'nan', expected a whole number"),
        (("--index", "radx"), "--index is 'radx', expected one of hash, radix. Did you mean 'radix'?"),
        (("--index", "radix", "--eviction", "clairvoyant"), "--index is 'radix', expected hash with --eviction clair"),
        (("--block-tokens", "256"), "has 2 ids, expected 4"),
    ],
)
def test_bad_input(command, trace, arguments, said):
    ended = command("trace", "cache", trace, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_trace_without_hash_ids_is_refused(command, tmp_path):
    (tmp_path / "plain.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,5\n")
    ended = command("trace", "cache", tmp_path / "plain.csv")
    assert ended.code == 2
    assert "has no hash ids" in ended.err
