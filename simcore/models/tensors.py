"""A weight tensor of a model, whatever it is for."""

from dataclasses import dataclass, replace

from simcore.models.weight_formats import Role


@dataclass(frozen=True, slots=True)
class Weight:
    """``copies`` tensors of ``rows`` x ``columns`` (output x input), of which one token uses ``active``.

    ``shards`` is into how many parts tensor parallelism can split one: 1 where every rank holds it whole, None where
    there is no such limit. ``kept`` tells that the checkpoint has it in 16 bits, whatever its format is for.
    """

    role: Role
    rows: int
    columns: int
    copies: int
    active: int
    shards: int | None = None
    kept: bool = False

    @property
    def elements(self) -> int:
        """Numbers in one copy."""
        return self.rows * self.columns

    def times(self, layers: int) -> "Weight":
        """The same tensor in each of ``layers`` layers."""
        return replace(self, copies=self.copies * layers, active=self.active * layers)


def matrix(
    rows: int, columns: int, role: Role = Role.LINEAR, copies: int = 1, active: int = 1, shards: int | None = None
) -> Weight:
    """A matrix, ``copies`` of it, of which a token uses ``active``."""
    return Weight(role, rows, columns, copies, active, shards)


def vector(length: int, copies: int = 1, active: int = 1, shards: int | None = 1) -> Weight:
    """A vector of a layer: a norm, a bias, a number per head."""
    return Weight(Role.VECTOR, 1, length, copies, active, shards)
