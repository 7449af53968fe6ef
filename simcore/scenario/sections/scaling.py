"""Replicas that come and go: how many are wanted, what a start takes, and instances that a provider takes back."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simcore.scenario.sections.bounds import Policy
from simcore.workload.config.section import LongerThanZero, Seconds, Section

Replicas = Annotated[int, Field(ge=1, le=10_000)]
GbPerS = Annotated[float, Field(gt=0, le=1e6)]


class Start(Section):
    """What a replica goes through before it serves: boot, load its weights, compile, warm up.

    Weights come by the links that lie on their way, each at its rate; whoever loads at once shares them max-min fairly.
    """

    boot_s: Seconds = 30.0
    """Time until an instance is there, seconds."""
    weights_from: Literal["network", "drive"] = "network"
    """Where weights are: in a store for all, behind the NICs (``network``), or on an instance's own ``drive``."""
    read_gb_per_s: GbPerS = 5.0
    """Rate of the store for all together, or of one drive, GB/s (10^9 bytes)."""
    compile_s: Seconds = 30.0
    """Time to compile and to capture graphs, seconds."""
    warm_up_s: Seconds = 5.0
    """Time of the first steps, which serve nobody, seconds."""
    wake_s: Seconds = 0.5
    """Time to wake one that sleeps, beside its weights, which come from host memory, seconds."""


class Scaling(Section):
    """How many replicas there are over time. ``replicas`` is how many serve at the start."""

    policy: Policy = {"name": "fixed"}
    """Policy that says how many are wanted."""
    min_replicas: Replicas = 1
    """Never fewer."""
    max_replicas: Replicas
    """Never more, those that start included."""
    interval_s: Annotated[float, Field(ge=0.001, le=86400)] = 15.0
    """Time between two decisions, seconds."""
    out_wait_s: Seconds = 0.0
    """Time after growing before it grows again, seconds."""
    in_wait_s: Seconds = 300.0
    """Shrink only to the most that was wanted in so many seconds."""
    most_in: Replicas | None = None
    """Most replicas to stop at a decision. By default all that are not wanted."""
    warm_replicas: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Replicas kept asleep, their weights in host memory, beside those above. One that wakes is replaced."""
    warm_price_share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Price of one that sleeps, of that of one that serves."""
    start: Start = Start()
    """What a start takes."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> "Scaling":
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"a max_replicas of at least the min_replicas of {self.min_replicas}")
        return self


class Reclaim(Section):
    """An instance that is taken back at a stated time."""

    replica: Annotated[int, Field(ge=0)]
    """Its number, from 0 in the first pool on."""
    at_s: Seconds
    """When notice is given, seconds from the start of the run."""


class Spot(Section):
    """Instances that their provider takes back, with notice. What a replica cannot finish by then is sent to others.

    Its price is ``price_usd_per_h``. ``retries`` says how often requests are sent again.
    """

    notice_s: Seconds = 30.0
    """Time between notice and end, seconds."""
    mean_life_s: LongerThanZero | None = None
    """Mean time to notice, drawn from an exponential law by the scenario's seed. By default none is drawn."""
    reclaimed: list[Reclaim] = []
    """Those that are taken back at stated times."""
