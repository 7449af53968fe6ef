"""What a scenario has done for requests beside routing them."""

from collections.abc import Sequence

from simcore.build.pool import PreparedPool
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scenario.policy_choice import build_policy
from simcore.scenario.sections import Gateway as GatewaySection
from simcore.scenario.sections import Retries
from simcore.service.clock import Clock
from simcore.service.ejections import Ejections
from simcore.service.gateway import Gateway
from simcore.service.gateway_queue import GatewayQueue
from simcore.service.hedges import Hedges
from simcore.service.resending import ResendConfig, Resending
from simcore.service.stage import Stage
from simcore.workload import Workload, samples_per_request


def check_gateway(scenario: Scenario, pools: Sequence[PreparedPool], workload: Workload) -> None:
    """Raise ``InputError`` for what goes with no cluster of this kind."""
    section = scenario.gateway or GatewaySection()
    hands_over = any(pool.role != "mixed" for pool in pools)
    for field, stated in (("hedging", section.hedging), ("ejection", section.ejection)):
        if stated is not None and hands_over:
            raise InputError(f"gateway.{field}.name", stated["name"], "none where pools hand over requests")
    if scenario.retries is not None and scenario.retries.of_timeouts:
        reasons = {
            "pools hand requests over": hands_over,
            "samples of a request stay together": samples_per_request(workload) > 1,
            "pipeline stages have batches in flight": any(pool.pipeline is not None for pool in pools),
        }
        for reason, holds in reasons.items():
            if holds:
                raise InputError("retries.of_timeouts", True, f"false, since {reason}")
    if section.most_open_requests is not None:
        reasons = {
            "where pools hand over requests": hands_over,
            "where samples of a request stay together": samples_per_request(workload) > 1,
            "with cluster.assignment, whose pools would wait for each other": scenario.cluster.assignment is not None,
        }
        for reason, holds in reasons.items():
            if holds:
                raise InputError("gateway.most_open_requests", section.most_open_requests, f"none {reason}")
    if section.hedging is None:
        return
    reasons = {
        "samples of a request stay together": samples_per_request(workload) > 1,
        "pipeline stages have batches in flight": any(pool.pipeline is not None for pool in pools),
        "there is one replica": sum(pool.replicas for pool in pools) == 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError("gateway.hedging.name", section.hedging["name"], f"none, since {reason}")


def build_gateway(scenario: Scenario, stage: Stage, clock: Clock, recorder: Recorder) -> Gateway:
    """The parts that a scenario states."""
    section, gateway = scenario.gateway or GatewaySection(), Gateway()
    if scenario.faults or scenario.retries is not None or scenario.cluster.takes_back:
        gateway.resending = Resending(clock, recorder, _resend_config(scenario.retries or Retries()))
    if section.hedging is not None:
        gateway.hedges = Hedges(clock, stage, build_policy("hedging", section.hedging, "gateway.hedging"))
    if section.ejection is not None:
        gateway.ejections = Ejections(clock, stage, build_policy("ejection", section.ejection, "gateway.ejection"))
    if section.output_limit is not None:
        gateway.output_limit = build_policy("output_limit", section.output_limit, "gateway.output_limit")
    if section.most_open_requests is not None:
        gateway.queue = GatewayQueue(clock, stage, recorder, section.most_open_requests)
        stage.followers.append(gateway.queue)
        stage.on_opened = gateway.queue.look
    return gateway


def _resend_config(section: Retries) -> ResendConfig:
    return ResendConfig(
        section.attempts,
        to_ns(section.delay_s),
        section.backoff,
        section.budget_share,
        section.budget_least,
        section.of_rejected,
        section.of_timeouts,
    )
