"""An index of cached blocks against what replicas have cached: at once, late, and after a crash."""

from dataclasses import dataclass, field
from typing import ClassVar
from unittest.mock import patch

import pytest

from policies import registry
from policies.routing import Routing
from policies.routing.kv_aware import KvAware
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from tests.e2e.scenarios import differences, merged, run
from tests.e2e.test_routing import CHAT

SEEN = []


@dataclass(slots=True)
class Checked(Routing):
    """Routes in turn, and notes for each replica what the index knows beside what its cache has."""

    delay_s: float = 0.0
    index: KvAware = field(default_factory=KvAware, init=False)

    follows_blocks: ClassVar[bool] = True

    def stored(self, replica, key):
        self.index.stored(replica, key)

    def removed(self, replica, key):
        self.index.removed(replica, key)

    def choose(self, request, replicas):
        known = dict(self.index.cached_blocks(replicas[0].prefix_keys(request)))
        usable = (request.prompt_tokens - 1) // 16
        for place, replica in enumerate(replicas):
            SEEN.append((16 * min(known.get(place, 0), usable), replica.cached_tokens(request)))
        return request.number % len(replicas)


def seen(document, folder, **parameters):
    SEEN.clear()
    known = {"checked": f"{__name__}:Checked"}
    with patch.object(registry, "_third_party", lambda kind: known if kind == "routing" else {}):
        scenario = merged(document, {"cluster": {"routing": {"name": "checked", **parameters}}})
        Simulation.prepare(scenario, folder).run(check=True)
    return list(SEEN)


def test_without_delay_the_index_is_what_caches_hold(tmp_path):
    pairs = seen(CHAT, tmp_path)
    assert all(known == cached for known, cached in pairs)
    assert sum(cached > 0 for _, cached in pairs) > 100
    assert len({cached for _, cached in pairs}) > 3


def test_a_late_index_is_stale(tmp_path):
    pairs = seen(CHAT, tmp_path, delay_s=0.2)
    assert any(known < cached for known, cached in pairs), "blocks that it does not know of yet"
    assert any(known > cached for known, cached in pairs), "blocks that are gone since"


def test_the_index_forgets_what_a_crash_took(tmp_path):
    crash = {"faults": [{"name": "crash", "replica": 1, "at_s": 0.8, "restart_after_s": 0.2}]}
    assert all(known == cached for known, cached in seen(merged(CHAT, crash), tmp_path))


def test_an_index_that_never_hears_anything_is_none(tmp_path):
    """Least tokens with the same books, to the bit."""
    late = run(merged(CHAT, {"cluster": {"routing": {"name": "kv-aware", "delay_s": 1e6}}}), tmp_path)
    tokens = run(merged(CHAT, {"cluster": {"routing": "least-tokens"}}), tmp_path)
    assert not differences(late, tokens)


def test_it_finds_more_than_least_tokens(tmp_path):
    hits = {
        name: run(merged(CHAT, {"cluster": {"routing": name}}), tmp_path).summary["kv"]["prefix_hit_rate"]
        for name in ("kv-aware", "least-tokens")
    }
    assert hits["kv-aware"] > hits["least-tokens"] + 0.05


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"memory": {"prefix_caching": False}}, "no prefix cache"),
        ({"memory": {"prefix_cache": {"index": "radix"}}}, "no index of hashes"),
    ],
)
def test_memory_that_tells_of_no_blocks_is_refused(tmp_path, stated, reason):
    with pytest.raises(InputError, match=reason):
        run(merged(merged(CHAT, stated), {"cluster": {"routing": "kv-aware"}}), tmp_path)
