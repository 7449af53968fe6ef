"""The columns of a trace that say who sends a request, and after which other."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.workload.traces.values import identity, output_limit, priority, tenant_name

NO_CHAT = -1
"""The number of the request before one that begins a chat."""
_NONE_BEFORE = ("", "-1")


class SenderColumns:
    """Those of the columns that a file is said to have, gathered row by row.

    Tenants and chats are numbered as they appear.
    """

    def __init__(self, names: dict[str, str]) -> None:
        readers = {
            "tenant": self._tenant,
            "priority": priority,
            "max_output_tokens": output_limit,
            "chat": self._chat,
            "follows": self._chat_before,
        }
        self._readers = [(readers[field], column) for field, column in names.items()]
        self._values = {field: array("q") for field in names}
        self._tenants: dict[str, int] = {}
        self._chats: dict[str, int] = {}

    def parse(self, values: Sequence[object]) -> list[int]:
        """One row's values, in the order of the columns; raises ValueError for one that cannot be read."""
        return [read(column, value) for (read, column), value in zip(self._readers, values, strict=True)]

    def append(self, row: Sequence[int]) -> None:
        """Add a row that was parsed."""
        for column, value in zip(self._values.values(), row, strict=True):
            column.append(value)

    def arrays(self, order: slice | NDArray[np.intp]) -> dict[str, Any]:
        """The columns in an order of rows, by the fields of ``Trace``."""
        columns = {field: np.frombuffer(values, dtype=np.int64)[order] for field, values in self._values.items()}
        return {**columns, "tenants": tuple(self._tenants)}

    def _tenant(self, column: str, value: object) -> int:
        return self._tenants.setdefault(tenant_name(column, value), len(self._tenants))

    def _chat(self, column: str, value: object) -> int:
        return self._chats.setdefault(identity(column, value), len(self._chats))

    def _chat_before(self, column: str, value: object) -> int:
        if value is None or str(value).strip() in _NONE_BEFORE:
            return NO_CHAT
        return self._chat(column, value)
