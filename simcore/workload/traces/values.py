"""From what a file holds to what a simulation counts in: whole nanoseconds and whole tokens, exactly."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import numpy as np

from simcore.workload.batch import LEAST_URGENT, NO_OUTPUT_LIMIT
from simcore.workload.lengths import MAX_TOKENS
from simcore.workload.traces.formats import ArrivalUnit

_NS_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
LATEST_NS = 2**63 - 1
_LONGEST_VALUE = 80
"""Characters of a value that an error shows."""


def token_count(column: str, value: object, least: int = 1) -> int:
    """A length in tokens. Raises ValueError unless ``value`` is a whole number from ``least`` to MAX_TOKENS."""
    tokens = _whole_number(column, value, least)
    if tokens > MAX_TOKENS:
        raise ValueError(_expected(column, value, f"at most {MAX_TOKENS} tokens"))
    return tokens


def tenant_name(column: str, value: object) -> str:
    """A tenant, "" where the value is empty. Raises ValueError unless it is text or a whole number."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(_expected(column, value, "text"))
    return str(value)


def identity(column: str, value: object) -> str:
    """What names a row. Raises ValueError unless it is text or a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(_expected(column, value, "text or a whole number"))
    return str(value).strip()


def priority(column: str, value: object) -> int:
    """A priority, 0 where the value is empty. Raises ValueError unless it is a whole number up to LEAST_URGENT."""
    if value is None or value == "":
        return 0
    number = _whole_number(column, value, 0)
    if number > LEAST_URGENT:
        raise ValueError(_expected(column, value, f"at most {LEAST_URGENT}"))
    return number


def output_limit(column: str, value: object) -> int:
    """A limit in tokens, NO_OUTPUT_LIMIT where the value is empty. Raises ValueError as ``token_count``."""
    return NO_OUTPUT_LIMIT if value is None or value == "" else token_count(column, value)


def _whole_number(column: str, value: object, least: int) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        whole = int(value)
    else:
        number = _decimal(value)
        if number is None or number != number.to_integral_value():
            raise ValueError(_expected(column, value, f"a whole number of at least {least}"))
        whole = int(number)
    if whole < least:
        raise ValueError(_expected(column, value, f"a whole number of at least {least}"))
    return whole


class ArrivalTimes:
    """Reads a column of arrival times, row by row. Of dates, either all state their offset from UTC or none does."""

    def __init__(self, column: str, unit: ArrivalUnit) -> None:
        self._column = column
        self._unit = unit
        self._offsets_stated: bool | None = None

    def parse(self, value: object) -> int:
        """An arrival in nanoseconds since the origin of its clock. Raises ValueError if ``value`` is no such time."""
        if self._unit == "timestamp":
            nanoseconds = self._timestamp_ns(value)
        else:
            number = _decimal(value)
            if number is None:
                raise ValueError(_expected(self._column, value, f"a number ({self._unit})"))
            nanoseconds = round(number * _NS_PER_UNIT[self._unit])
        if abs(nanoseconds) > LATEST_NS:
            raise ValueError(_expected(self._column, value, "a time within 292 years of the clock's origin"))
        return nanoseconds

    def _timestamp_ns(self, value: object) -> int:
        if isinstance(value, np.datetime64):
            return int(value.astype("datetime64[ns]").astype(np.int64))
        match = _TIMESTAMP.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise ValueError(_expected(self._column, value, "a date and time such as 2023-11-16 18:15:46.68"))
        try:
            moment = datetime.fromisoformat(match[1] + (match[3] or ""))
        except ValueError as error:
            raise ValueError(_expected(self._column, value, "a date and time that exists")) from error
        stated = moment.tzinfo is not None
        if self._offsets_stated not in (None, stated):
            rule = "with an offset from UTC, such as Z," if self._offsets_stated else "without an offset from UTC"
            raise ValueError(_expected(self._column, value, f"a time {rule} as in the rows above"))
        self._offsets_stated = stated
        since = (moment if stated else moment.replace(tzinfo=UTC)) - _EPOCH
        return since // timedelta(microseconds=1) * 1000 + int((match[2] or "").ljust(9, "0"))


def _decimal(value: object) -> Decimal | None:
    """A finite number, or None. Floats stand for the shortest decimal that reads back as the same float."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, str) and ("_" in value or not value.isascii()):  # which Decimal takes, and no trace means
        return None
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        return None
    # An exponent this large cannot be a time or a length, and would take long to expand.
    return number if number.is_finite() and number.adjusted() < 30 else None


def _expected(column: str, value: object, expected: str) -> str:
    if value is None or value == "":
        return f"{column} is missing, expected {expected}"
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    if len(shown) > _LONGEST_VALUE:
        shown = f"{shown[:_LONGEST_VALUE]}..."
    return f"{column} is {shown}, expected {expected}"
