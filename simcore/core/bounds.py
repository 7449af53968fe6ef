"""The ranges of numbers by what they count, for the schemas of every input.

They are wide: what lies outside is a slip, or cannot be counted with. Within them, products of a few of these numbers
stay far from where floating point ends.
"""

from typing import Annotated

from pydantic import Field

MOST_OF_MODEL = 10**8
"""Of layers, heads, dimensions, tokens of a vocabulary or of a context: what a model's configuration counts."""
MOST_COUNT = 2**31 - 1
"""Of requests, tokens, devices or anything else in a file."""
LEAST_FIGURE, MOST_FIGURE = 1e-6, 1e12
"""Of a datasheet, in its units."""
SHORTEST_S, LONGEST_S = 1e-9, 9e9
"""The clock counts nanoseconds and holds 292 years."""
MOST_USD_PER_H = 1e6
MOST_DIGITS = 10
"""Of a count that stands within a text, where it is read by other means than a schema."""

Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
Figure = Annotated[float, Field(ge=LEAST_FIGURE, le=MOST_FIGURE)]
UsdPerHour = Annotated[float, Field(ge=0, le=MOST_USD_PER_H)]
