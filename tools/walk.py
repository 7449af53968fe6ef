"""Write ``docs/walk.md``: ``python tools/walk.py [--check]``.

One request runs from a row of a trace to its row in the run folder, under a profiler. Every station is a function of
one file. The script fails unless the run passes all stations in the order of the document, and no file stands twice.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, not another that may be installed

from servetwin.api import save, simulate  # noqa: E402
from tools.publishing import publish_page  # noqa: E402

DOCUMENT = ROOT / "docs" / "walk.md"
ROW = "0.5,700,40"


@dataclass(frozen=True, slots=True)
class Station:
    """A function that the request passes, and what happens to it there."""

    file: str
    function: str
    what: str


STATIONS = (
    Station("simcore/workload/traces/csv_file.py", "rows", "The row is read: three texts."),
    Station("simcore/workload/traces/values.py", "token_count", "The texts become whole tokens and a time."),
    Station("simcore/workload/batch.py", "RequestBatch.__post_init__", "The row becomes an entry of arrays."),
    Station("simcore/service/senders.py", "arriving", "Its time has come: the row becomes a `Request` and arrives."),
    Station("policies/routing/round_robin.py", "RoundRobin.choose", "A routing policy picks a replica."),
    Station("simcore/service/replica.py", "Replica.submit", "The replica takes it in."),
    Station(
        "simcore/service/output_ends.py", "OutputEnds.expect", "Its true output length goes where no policy looks."
    ),
    Station("simcore/scheduling/waiting_queue.py", "KeyedQueue.push", "It joins the queue of the scheduler."),
    Station("policies/ordering/fcfs.py", "FirstComeFirstServed.key", "An ordering policy says where in the queue."),
    Station("simcore/scheduling/admission.py", "admit", "A step is planned, and the queue is let in."),
    Station("simcore/memory/block_counter.py", "KVBlockCounter.admit", "It gets KV blocks for its first chunk."),
    Station("simcore/scheduling/state.py", "SchedulerState.start", "It runs now, and has a slot."),
    Station("simcore/core/batch_plan.py", "BatchPlan.add_chunk", "Its prompt becomes a chunk of the batch plan."),
    Station("simcore/service/executor.py", "SimulatedExecutor.execute", "The plan is executed: time passes."),
    Station("simcore/cost/step_cost.py", "StepCost.step_ns", "How much, the prices of the kernels say."),
    Station("simcore/scheduling/scheduler.py", "Scheduler.commit", "The step is over: what it computed counts."),
    Station("simcore/core/decode_pool.py", "DecodePool.join", "The prompt is done; it decodes with the others."),
    Station("simcore/recording/gap_tracker.py", "GapTracker.prefilled", "Its first token is noted: TTFT."),
    Station("simcore/core/token_gaps.py", "TokenGaps.add_steps", "All further tokens come in one jump: ITL."),
    Station("simcore/service/open_requests.py", "OpenRequests.finish", "Everybody who waits for its end is told."),
    Station("simcore/recording/recorder.py", "Recorder.request_finished", "Its row of integers is complete."),
    Station("simcore/memory/paging.py", "Paging._give_back", "The next plan sees its end: it gives its blocks back."),
    Station("simcore/metrics/tables.py", "request_table", "Integers become seconds, one row per request."),
    Station("simcore/metrics/summary.py", "summarise", "Rows become percentiles with intervals."),
    Station("dashboard/report.py", "render_report", "The report is drawn."),
    Station("simcore/output/run_folder.py", "write_run_folder", "The run folder is written, whole or not at all."),
)


def walked(stations: Sequence[Station], go: Callable[[], None]) -> list[Station]:
    """The stations in the order in which ``go`` first came to them; those that it never came to are left out."""
    wanted = {(str(ROOT / station.file), station.function): station for station in stations}
    passed: dict[Station, None] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            station = wanted.get((frame.f_code.co_filename, frame.f_code.co_qualname))
            if station is not None:
                passed.setdefault(station)

    sys.setprofile(look)
    try:
        go()
    finally:
        sys.setprofile(None)
    return list(passed)


def one_request() -> None:
    """Simulate a trace of one row and save the run."""
    with TemporaryDirectory() as name:
        trace = Path(name) / "trace.csv"
        trace.write_text(f"arrival_s,prompt_tokens,output_tokens\n{ROW}\n", encoding="utf-8")
        scenario = {
            "model": "smollm2-135m",
            "cluster": {"accelerator": "h100-sxm"},
            "workload": {"trace": str(trace), "format": "csv"},
        }
        save(simulate(scenario), Path(name) / "run")


def page(stations: Sequence[Station]) -> str:
    """The document."""
    lines = [
        "# The walk",
        "",
        "Made by `tools/walk.py`, which runs it: one request, from its row of a trace to its row of the run folder.",
        "Each line is the first visit to a function. No file stands twice.",
        "",
        f"The row is `{ROW}`: it arrives after half a second, with 700 prompt tokens, and gets 40 output tokens.",
        "",
        "| station | file | function | what happens |",
        "|---:|---|---|---|",
    ]
    for number, station in enumerate(stations, start=1):
        path = f"[{station.file}](../{station.file})"
        lines.append(f"| {number} | {path} | `{station.function}` | {station.what} |")
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    """Walk and write, or compare; returns the exit code."""
    passed = walked(STATIONS, one_request)
    if passed != list(STATIONS):
        for number, (meant, found) in enumerate(zip(STATIONS, [*passed, *[None] * len(STATIONS)], strict=False)):
            if meant != found:
                print(f"station {number + 1} should be {meant.function} of {meant.file}, is {found}", file=sys.stderr)
                break
        return 1
    if len({station.file for station in STATIONS}) < len(STATIONS):
        print("a file stands twice", file=sys.stderr)
        return 1
    text = page(STATIONS)
    return publish_page(DOCUMENT, text, check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
