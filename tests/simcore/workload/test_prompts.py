"""Prompts that begin with parts that many requests share."""

from itertools import pairwise

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.validation import explain
from simcore.workload import RequestBatch
from simcore.workload.in_memory import concatenate
from simcore.workload.lengths import Fixed, Uniform
from simcore.workload.prompts import ExampleLists, Prompts, SharedTexts, UniqueText
from tests.simcore.workload.contents_model import Scenario, all_requests, build, texts

POISSON = {"name": "poisson", "rate_per_s": 10.0}
UNIFORM = {"name": "uniform", "low": 1, "high": 20}
RANDOM = {"requests": 60, "arrivals": POISSON, "prompt_tokens": UNIFORM, "output_tokens": UNIFORM}
SHARED = {"name": "shared", "tokens": UNIFORM}


def requests(tmp_path, prefix, **more):
    return all_requests(build(tmp_path, **RANDOM, prefix=prefix, **more))


def test_without_a_prefix_requests_have_no_content(tmp_path):
    assert all_requests(build(tmp_path, **RANDOM)).contents is None


def test_an_empty_prefix_makes_all_tokens_ones_own(tmp_path):
    tokens = [token for prompt, output in texts(requests(tmp_path, [])) for token in prompt + output]
    assert len(set(tokens)) == len(tokens)


def test_a_prefix_changes_no_other_draw(tmp_path):
    with_prefix, plain = requests(tmp_path, [SHARED]), all_requests(build(tmp_path, **RANDOM))
    (length,) = set((with_prefix.prompt_tokens - plain.prompt_tokens).tolist())
    assert 1 <= length <= 20
    assert np.array_equal(with_prefix.arrival_ns, plain.arrival_ns)
    assert np.array_equal(with_prefix.output_tokens, plain.output_tokens)


def test_all_begin_with_one_system_prompt_and_go_on_alone(tmp_path):
    found = texts(requests(tmp_path, [{**SHARED, "tokens": {"name": "fixed", "tokens": 9}}]))
    assert len({tuple(prompt[:9]) for prompt, _ in found}) == 1
    own = [token for prompt, output in found for token in prompt[9:] + output]
    assert len(set(own)) == len(own)
    assert not set(own) & set(found[0][0][:9])


def test_each_tenant_has_its_own(tmp_path):
    tenants = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.5}]
    part = {**SHARED, "tokens": {"name": "fixed", "tokens": 9}}
    for per_tenant, different in ((False, 1), (True, 2)):
        sent = requests(tmp_path, [{**part, "per_tenant": per_tenant}], tenants=tenants)
        prompts = [tuple(prompt[:9]) for prompt, _ in texts(sent)]
        assert len(set(prompts)) == different
        assert len(set(zip(prompts, sent.tenant.tolist(), strict=True))) == 2


def test_a_document_is_the_same_wherever_it_stands(tmp_path):
    part = {**SHARED, "among": 8, "zipf": 1.0, "count": {"name": "fixed", "tokens": 3}}
    sent = requests(tmp_path, [{"name": "unique", "tokens": {"name": "fixed", "tokens": 4}}, part])
    documents = {}
    for content in sent.contents:
        for run in content.prompt[1:-1]:  # the corpus; successive documents of it may be one run
            documents.setdefault(run.first, set()).add(run.tokens)
    assert min(documents) == 0
    assert len(documents) == 8
    heads = [token for prompt, _ in texts(sent) for token in prompt[:4]]
    assert len(set(heads)) == 4 * 60


def test_fewer_examples_are_a_prefix_of_more(tmp_path):
    part = {"name": "few-shot", "among": 2, "count": {"name": "uniform", "low": 1, "high": 5}, "tokens": UNIFORM}
    sent, plain = requests(tmp_path, [part]), all_requests(build(tmp_path, **RANDOM))
    lengths = (sent.prompt_tokens - plain.prompt_tokens).tolist()
    examples = sorted({tuple(prompt[:length]) for (prompt, _), length in zip(texts(sent), lengths, strict=True)})
    assert len(examples) == 10
    for one, other in pairwise(examples):
        assert other[: len(one)] == one or one[0] != other[0]


def test_a_closed_loop_has_contents_too(tmp_path):
    loop = build(tmp_path, **RANDOM | {"arrivals": {"name": "closed-loop", "concurrency": 3}}, prefix=[SHARED])
    assert loop.requests.contents == requests(tmp_path, [SHARED]).contents


def test_streams_share_nothing(tmp_path):
    stream = {**RANDOM, "prefix": [SHARED]}
    merged = all_requests(build(tmp_path, streams=[{**stream, "tenant": "a"}, {**stream, "tenant": "b"}, RANDOM]))
    firsts = [
        {prompt[0] for (prompt, _), who in zip(texts(merged), merged.tenant, strict=True) if who == k}
        for k in (0, 1, 2)
    ]
    assert [len(first) for first in firsts] == [1, 1, 60]
    tokens = [
        {t for (p, o), who in zip(texts(merged), merged.tenant, strict=True) if who == k for t in p + o}
        for k in (0, 1, 2)
    ]
    assert not tokens[0] & tokens[1]
    assert not (tokens[0] | tokens[1]) & tokens[2]


parts = st.lists(
    st.one_of(
        st.builds(UniqueText, st.just(Uniform(1, 4))),
        st.builds(
            SharedTexts, st.integers(3, 5), st.floats(0, 2), st.just(Uniform(1, 3)), st.just(3), st.just(Uniform(1, 4)),
            st.sampled_from([1, 2]),
        ),
        st.builds(
            ExampleLists, st.integers(1, 3), st.floats(0, 2), st.just(Uniform(1, 3)), st.just(3), st.just(Fixed(2)),
            st.sampled_from([1, 2]),
        ),
    ),
    max_size=4,
)  # fmt: skip


@settings(deadline=None)
@given(parts, st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**64))
def test_what_is_drawn_does_not_depend_on_batches_and_is_shared_only_where_meant(parts, count, cut, seed):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 6, size=(2, count))
    tenant = random.integers(2, size=count)
    plain = RequestBatch(np.arange(count), *lengths, tenant, ("a", "b"))
    write = Prompts(tuple(parts)).start(seed)
    in_parts = concatenate([write(plain.at(slice(start, start + cut))) for start in range(0, count, cut)])
    at_once = Prompts(tuple(parts)).start(seed)(plain)
    assert in_parts.contents == at_once.contents
    assert np.array_equal(in_parts.prompt_tokens, at_once.prompt_tokens)
    owners: dict[int, set[int]] = {}
    for place, (prompt, output) in enumerate(texts(at_once)):
        own = prompt[-plain.prompt_tokens[place] :] + output
        assert len(set(own)) == len(own)
        for token in own:
            owners.setdefault(token, set()).add(place)
    assert all(len(places) == 1 for places in owners.values())
    for place, (prompt, _) in enumerate(texts(at_once)):
        assert all(owners.get(token, {place}) == {place} for token in prompt)


REJECTED = [
    ([{**SHARED, "name": "shard"}], "workload.prefix.0.name is 'shard', expected one of few-shot, shared, unique"),
    ([{**SHARED, "amung": 3}], "workload.prefix.0.amung is an unknown field"),
    (
        [{**SHARED, "count": {"name": "fixed", "tokens": 2}}],
        "expected a count of at most 64, and of the 1 texts, not 2.",
    ),
    (
        [{**SHARED, "among": 999, "count": {"name": "uniform", "low": 1, "high": 65}}],
        "expected a count of at most 64, and of the 999 texts, not 65.",
    ),
    ([{"name": "few-shot", "tokens": UNIFORM}], "workload.prefix.0.count is missing"),
    (
        [{"name": "few-shot", "tokens": UNIFORM, "count": {"name": "lognormal", "median": 4, "sigma": 1}}],
        "expected at most 1000 examples a template and 10000000 of all, not 2147483647 of each of 1.",
    ),
    ([{**SHARED, "zipf": -1}], "workload.prefix.0.zipf is -1, expected a number of at least 0"),
    ({"name": "shared"}, "workload.prefix is a mapping, expected a list"),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "expected"), REJECTED)
def test_bad_input_is_one_sentence(prefix, expected):
    with pytest.raises(pydantic.ValidationError) as caught:
        Scenario(workload={**RANDOM, "prefix": prefix})
    assert expected in str(explain(caught.value, Scenario))
