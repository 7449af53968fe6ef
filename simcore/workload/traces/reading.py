"""Reading a trace, row by row, into columns of whole numbers."""

from array import array
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from simcore.core.errors import FileError
from simcore.workload.batch import Int64Array
from simcore.workload.contents import Contents
from simcore.workload.traces.formats import Columns
from simcore.workload.traces.hash_ids import HashIdColumn
from simcore.workload.traces.layout import Layout, find_layout
from simcore.workload.traces.senders import SenderColumns
from simcore.workload.traces.values import LATEST_NS, ArrivalTimes, token_count


@dataclass(frozen=True, slots=True)
class Trace:
    """The requests of a trace in order of arrival, one array element each.

    ``arrival_ns`` counts from the first request; None where the file has lengths alone. ``failed`` counts rows left
    out because they have no output token, ``out_of_order`` rows that arrived before the one above them.

    The columns after these are None where they are not named; they are those of ``RequestBatch``, as recorded: an
    output may be longer than its limit. ``chat`` numbers requests and those that they go on from, which ``follows``
    names, NO_CHAT where there is none. ``contents`` is None where the file has no hash ids; each of these is of
    ``block_tokens``.
    """

    format: str
    arrival_ns: Int64Array | None
    prompt_tokens: Int64Array
    output_tokens: Int64Array
    failed: int
    out_of_order: int
    tenant: Int64Array | None = None
    tenants: tuple[str, ...] = ()
    priority: Int64Array | None = None
    max_output_tokens: Int64Array | None = None
    chat: Int64Array | None = None
    follows: Int64Array | None = None
    contents: Contents | None = None
    block_tokens: int | None = None

    def __len__(self) -> int:
        return len(self.prompt_tokens)


def read_trace(
    path: Path,
    format: str = "auto",
    columns: Columns | None = None,
    *,
    sort: bool = False,
    skip_failed: bool = False,
    until_ns: int | None = None,
    limit: int | None = None,
    block_tokens: int | None = None,
) -> Trace:
    """Read requests from ``path`` (also gzip-compressed CSV and JSONL).

    ``format`` is a name in FORMATS, or "auto": told from the file's ending and its column names. Unless
    ``sort`` is set, reading ends at the first request that arrives ``until_ns`` after the first one, or with ``limit``
    requests. ``block_tokens`` is how many tokens a hash id stands for, where the format does not say so, or says
    otherwise.

    Raises FileError, naming the line, for the first row that cannot be read. Such is a row that arrives before the one
    above it, unless ``sort`` is set, which puts requests in order of arrival (in that of the file where equal), and a
    row without output tokens, as failed requests have, unless ``skip_failed`` is set, and one whose hash ids are not as
    many as its prompt has blocks. A file without a usable row is an error.
    """
    layout = _with_block_tokens(find_layout(path, format, columns), block_tokens, path)
    arrivals, prompts, outputs = array("q"), array("q"), array("q")
    senders = SenderColumns(layout.columns.of_senders())
    hash_ids = HashIdColumn(layout.columns.hash_ids or "", layout.columns.block_tokens) if layout.has_hash_ids else None
    failed = out_of_order = 0
    names = layout.columns
    times = ArrivalTimes(names.arrival, names.arrival_unit)
    for place, (prompt_value, output_value, *others) in layout.rows(path):
        try:
            prompt = token_count(names.prompt_tokens, prompt_value)
            output = token_count(names.output_tokens, output_value, least=0)
            arrival = times.parse(others.pop(0)) if layout.has_arrivals else 0
            ids = hash_ids.parse(others.pop(0), prompt) if hash_ids is not None else []
            sender = senders.parse(others)
        except ValueError as error:
            raise layout.error(path, str(error), place) from error
        if output == 0:
            if not skip_failed:
                problem = f"{names.output_tokens} is 0, expected at least 1 ('skip_failed' leaves failed requests out)"
                raise layout.error(path, problem, place)
            failed += 1
            continue
        if arrivals and arrival < arrivals[-1]:
            if not sort:
                problem = f"{names.arrival} is earlier than in the row above ('sort' puts rows in order of arrival)"
                raise layout.error(path, problem, place)
            out_of_order += 1
        if until_ns is not None and not sort and arrivals and arrival - arrivals[0] >= until_ns:
            break
        arrivals.append(arrival)
        prompts.append(prompt)
        outputs.append(output)
        senders.append(sender)
        if hash_ids is not None:
            hash_ids.append(ids)
        if len(arrivals) == limit and not sort:
            break
    if not arrivals:
        raise FileError(path, "holds no request" + (" that succeeded" if failed else ""))
    recorded_ns, prompt_tokens, output_tokens = (np.frombuffer(c, dtype=np.int64) for c in (arrivals, prompts, outputs))
    if int(recorded_ns.max()) - int(recorded_ns.min()) > LATEST_NS:
        raise FileError(path, "has arrivals more than 292 years apart, the most that a clock holds")
    order = np.argsort(recorded_ns, kind="stable") if out_of_order else slice(None)
    return Trace(
        layout.format,
        recorded_ns[order] - recorded_ns.min() if layout.has_arrivals else None,
        prompt_tokens[order],
        output_tokens[order],
        failed,
        out_of_order,
        **senders.arrays(order),
        contents=None if hash_ids is None else hash_ids.contents(prompt_tokens, output_tokens, order),
        block_tokens=layout.columns.block_tokens if layout.has_hash_ids else None,
    )


def _with_block_tokens(layout: Layout, block_tokens: int | None, path: Path) -> Layout:
    if block_tokens is None:
        return layout
    if not layout.has_hash_ids:
        raise FileError(path, "has no hash ids, expected them where 'block_tokens' is stated")
    return replace(layout, columns=replace(layout.columns, block_tokens=block_tokens))
