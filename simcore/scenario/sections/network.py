"""Where replicas stand, and how KV moves between them."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.scenario.sections.bounds import Policy, StepSeconds
from simcore.workload.config.section import Section
from simcore.workload.lengths import MAX_TOKENS

GbPerS = Annotated[float, Field(gt=0, le=1e6)]


class Network(Section):
    """Nodes, racks, and what lies between them.

    Within a node KV moves by the accelerators' own links, else by PCIe. Between nodes it moves by their NICs
    (``network_gb_per_s`` of the devices). Concurrent transfers share each link max-min fairly.
    """

    devices_per_node: Annotated[int, Field(ge=1, le=1024)] = 8
    """Accelerators of a node. Replicas fill nodes in their order; one that does not fit begins another."""
    nodes_per_rack: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Nodes of a rack. By default all stand in one."""
    uplink_gb_per_s: GbPerS | None = None
    """Rate between a rack and all others for each direction, GB/s (10^9 bytes). By default without limit."""
    latency_s: StepSeconds = 1e-5
    """Time before the first byte of a transfer moves, seconds."""


class Handover(Section):
    """How requests go from pools of role ``prefill`` to pools of role ``decode``."""

    routing: Policy = {"name": "least-requests"}
    """Policy that picks the replica that decodes."""
    transfer: Literal["whole", "layers"] = "layers"
    """Whether KV moves when the prompt is computed (``whole``), or layer by layer while it is."""
    lost_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of transfers that are lost, by chance."""
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    """Times that a lost transfer is sent again. Then the decoding replica computes the prompt itself."""


class Migration(Section):
    """How running requests go from replica to replica. What they have is copied while they decode on."""

    policy: Policy = {"name": "virtual-usage"}
    """Policy that says which requests move."""
    interval_s: Annotated[float, Field(ge=1e-3, le=3600)] = 0.1
    """Seconds from one look at the replicas to the next."""
    spare_tokens: Annotated[int, Field(ge=16, le=MAX_TOKENS)] = 128
    """Tokens for which blocks are set aside beyond those of a request that moves. One that outgrows them stays."""
    last_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 16
    """Tokens left to copy at which a request stops until they are copied too."""
    most_copies: Annotated[int, Field(ge=1, le=1000)] = 8
    """Copies after which it stops in any case."""
