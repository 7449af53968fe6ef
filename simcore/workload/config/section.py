"""What all sections have in common, and the numbers that stand in them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from simcore.core.bounds import LONGEST_S, SHORTEST_S
from simcore.workload.lengths import MAX_TOKENS

Text = Annotated[str, Field(min_length=1)]
MAX_REQUESTS = 10**9
Count = Annotated[int, Field(ge=1, le=MAX_REQUESTS)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
RatePerS = Annotated[float, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S)]
LongerThanZero = Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S)]


class Section(BaseModel):
    """Strict: no unknown keys, no text or booleans for numbers, no infinities."""

    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
