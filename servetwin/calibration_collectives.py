"""Collectives of a calibration: ranks are processes, and what they measure goes into the log like any kernel."""

from pathlib import Path
from tempfile import TemporaryDirectory

from calibrate.measuring.device import KernelPoint
from calibrate.measuring.repetition import KernelSample, Measured, median_interval
from calibrate.measuring.sample_log import SampleLog
from experiments.processes import in_processes
from live.measuring.collectives import Message, Rank, message_times, rank_counts
from simcore.core.errors import ServetwinError

KIND = "collective"


def measure_collectives(device: str, log: SampleLog, resume: bool) -> list[str]:
    """Add those to the log that the machine has ranks for; sentences on what could not be measured.

    With ``resume`` nothing is measured that the log has already.
    """
    if resume and any(sample.point.kind == KIND for one in log.measured for sample in one.samples):
        return []
    told = []
    for ranks in rank_counts(device):
        try:
            for message in _messages(device, ranks):
                log.add(_measured(message))
        except (ServetwinError, RuntimeError) as error:
            told.append(f"Collectives of {ranks} ranks could not be measured: {str(error).splitlines()[-1]}")
    return told


def _messages(device: str, ranks: int) -> list[Message]:
    """What the first rank measured."""
    with TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        tasks = [Rank(number, ranks, device, store) for number in range(ranks)]
        found = dict(in_processes(message_times, tasks, ranks, lambda rank: f"rank {rank.number}"))
    return found[0]


def _measured(message: Message) -> Measured:
    shape = message.operation, message.implementation, 1, message.ranks, message.bytes
    sample = KernelSample(KernelPoint(KIND, shape), *median_interval(message.seconds))
    outliers = sum(one > 1.5 * sample.latency_s for one in message.seconds)
    name = f"{message.operation}: {message.ranks} ranks, {message.bytes} bytes"
    return Measured(name, (sample,), 0.0, sample.latency_s, len(message.seconds), 0, outliers, {})
