"""Which pool serves whom, by hand."""

from dataclasses import dataclass

import pytest

from policies.assignment.by_tenant import ByTenant
from policies.assignment.fall_back import FallBack
from policies.assignment.split import Split
from tests.policies.admission.test_admission_policies import Sent as Admitted


@dataclass
class Sent(Admitted):
    session: int | None = None


@dataclass
class Pool:
    name: str
    replicas: int = 1
    waiting_requests: int = 0


POOLS = [Pool("large"), Pool("small")]


def test_tenants_have_the_pools_that_they_are_given_and_others_the_rest():
    policy = ByTenant({"code": "small"}, otherwise="large")
    assert [policy.choose(Sent(tenant=tenant), POOLS) for tenant in ("code", "chat")] == [1, 0]
    assert ByTenant({"code": "large"}, otherwise="small").choose(Sent(tenant="chat"), POOLS) == 1
    with pytest.raises(ValueError, match=r"pools\.code is 'tiny', expected one of large, small"):
        ByTenant({"code": "tiny"}).check_pools(["large", "small"])


def test_a_user_stays_in_one_pool_and_each_gets_its_share():
    policy = Split({"small": 0.3}, seed=4)
    by_session = [policy.choose(Sent(number=number, session=number // 5), POOLS) for number in range(20_000)]
    assert all(len(set(by_session[user * 5 : user * 5 + 5])) == 1 for user in range(4000))
    assert sum(by_session) / len(by_session) == pytest.approx(0.3, abs=0.02)
    assert len({policy.choose(Sent(number=number, tenant="a"), POOLS) for number in range(50)}) == 1
    assert len({policy.choose(Sent(number=number), POOLS) for number in range(50)}) == 2


def test_shares_must_be_those_of_pools_and_add_up():
    with pytest.raises(ValueError, match=r"shares add up to 1\.2"):
        Split({"small": 0.6, "large": 0.6})
    with pytest.raises(ValueError, match="expected 1, as all pools are named"):
        Split({"small": 0.2, "large": 0.6}).check_pools(["large", "small"])
    Split({"small": 0.4, "large": 0.6}).check_pools(["large", "small"])


def test_the_smaller_pool_takes_over_while_the_larger_is_busy():
    policy = FallBack(waiting_requests=4, from_priority=1)
    busy = [Pool("large", 2, 8), Pool("small", 1, 9)]
    assert policy.choose(Sent(priority=1), [Pool("large", 2, 7), Pool("small")]) == 0
    assert policy.choose(Sent(priority=1), busy) == 1
    assert policy.choose(Sent(priority=0), busy) == 0
