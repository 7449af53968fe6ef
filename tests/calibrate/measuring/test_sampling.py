"""Points are chosen where little is known, repeated until the median is sure, and fitted together."""

import numpy as np
import pytest

from calibrate.measuring.campaign import measure_machine
from calibrate.measuring.device import Candidate, KernelPoint, Reading
from calibrate.measuring.fitting import Made, checked_fit, sample_tables
from calibrate.measuring.host import fit_host
from calibrate.measuring.repetition import Repetition, measure, median_interval
from calibrate.measuring.replay import ReplayDevice
from calibrate.measuring.sample_log import SampleLog
from calibrate.measuring.sampler import Sampler
from calibrate.measuring.surrogate import Surrogate
from calibrate.profile_writer import Origin
from calibrate.samples import SampleTable

TOKENS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024])
SHAPES = ((4096, 1024), (1024, 4096))
MADE = Made("a", "own", "1", Origin("here", "own", "today"))


def true_s(tokens, n, k):
    return 5e-6 + np.maximum(2.0 * tokens * n * k / 1e12, 2.0 * n * k / 1e11)


def table():
    tokens = np.tile(TOKENS, len(SHAPES))
    n, k = (np.repeat([shape[place] for shape in SHAPES], len(TOKENS)) for place in (0, 1))
    columns = {"dtype": np.full(len(tokens), "bf16"), "tokens": tokens, "n": n, "k": k}
    return SampleTable("gemm", "a", "own", "1", columns, true_s(tokens, n, k), "x", np.arange(len(tokens)))


def device(noise=0.0, seed=0):
    return ReplayDevice([table()], lambda point: 1.0, noise, seed)


class Jumpy:
    """One candidate, whose readings are these."""

    def __init__(self, totals, disturbed=()):
        self.point = KernelPoint("gemm", ("bf16", 1, 8, 8))
        self.totals, self.disturbed, self.taken = totals, disturbed, 0

    def candidates(self):
        return [Candidate("one", {self.point: 1})]

    def read(self, candidate):
        place = self.taken % len(self.totals)
        self.taken += 1
        total = self.totals[place]
        return Reading({self.point: total}, total, disturbed=place in self.disturbed)


def test_the_interval_of_a_median_holds_it_in_nineteen_of_twenty_cases():
    random = np.random.default_rng(0)
    found = [median_interval(random.lognormal(size=21)) for _ in range(400)]
    inside = np.mean([low <= 1.0 <= high for _, low, high in found])
    assert inside > 0.93


def test_a_steady_kernel_is_measured_least_often_and_a_jumpy_one_most():
    rule = Repetition(least=5, most=30, most_s=60, tight=0.02, warm_up=1)
    steady, jumpy = Jumpy([1e-3]), Jumpy([1e-3, 2e-3, 1.3e-3])
    assert measure(steady, steady.candidates()[0], rule).repeats == 5
    found = measure(jumpy, jumpy.candidates()[0], rule)
    assert found.repeats == 30
    assert found.samples[0].latency_s == pytest.approx(1.3e-3)


def test_disturbed_readings_are_counted_and_left_out():
    one = Jumpy([1e-3, 9e-3, 1e-3], disturbed=(1,))
    found = measure(one, one.candidates()[0], Repetition(least=4, most=9, most_s=60, warm_up=0))
    assert found.disturbed >= 1
    assert found.samples[0].latency_s == 1e-3


def test_a_surrogate_is_sure_where_it_measured_and_unsure_far_away():
    surrogate = Surrogate()
    for tokens in (1, 4, 16, 64, 256):
        surrogate.add(KernelPoint("gemm", ("bf16", tokens, *SHAPES[0])), float(true_s(tokens, *SHAPES[0])))
    near, far = KernelPoint("gemm", ("bf16", 16, *SHAPES[0])), KernelPoint("gemm", ("bf16", 16, 65536, 65536))
    logs, unsure = surrogate.predict([near, far])
    assert np.exp(logs[0]) == pytest.approx(true_s(16, *SHAPES[0]), rel=0.05)
    assert unsure[0] < 0.5 * unsure[1]


def test_the_next_point_is_where_least_is_known():
    one = device()
    sampler = Sampler(one.candidates(), by_time=False)
    for candidate in one.candidates():
        if candidate.name.endswith("4096 1024"):
            sampler.tell([measure(one, candidate, Repetition(least=1, most=1, warm_up=0))])
            sampler.take_as_measured([candidate.name])
    (chosen,) = sampler.choose(sampler.outlook())
    assert chosen.name.endswith("1024 4096")


def test_chosen_points_fit_better_than_as_many_at_random(tmp_path):
    def error(measured):
        tables = sample_tables(measured, MADE, "x")
        points = {point for candidate in device().candidates() for point in candidate.kernels}
        checked = checked_fit(tables["gemm"], points, None)
        assert checked is not None
        from calibrate.fit.held_out import FITS

        whole = table()
        return float(np.median(np.abs(FITS["gemm"].predict(checked.fitted, whole) / whole.latency_s - 1)))

    one, rule = device(noise=0.01, seed=1), Repetition(least=1, most=1, warm_up=0)
    sampler, chosen = Sampler(one.candidates(), by_time=False), []
    for _ in range(14):
        (candidate,) = sampler.choose(sampler.outlook())
        chosen.append(measure(one, candidate, rule))
        sampler.tell(chosen[-1:])
    assert error(chosen) < 0.05


def test_a_campaign_resumes_where_it_ended(tmp_path):
    log = SampleLog(tmp_path / "samples.jsonl", {"device": "a"})
    rule = Repetition(least=1, most=1, warm_up=0)
    first = measure_machine(device(), log, 60, 0.05, repetition=rule)
    assert first.reason == "the target error is met"
    again = SampleLog(tmp_path / "samples.jsonl", {"device": "a"})
    assert len(again.measured) == first.taken
    second = measure_machine(device(), again, 60, 0.05, resume=True, repetition=rule)
    assert (second.taken, second.reason) == (0, "the target error is met")
    third = measure_machine(device(), again, 60, 1e-9, resume=True, repetition=rule)
    assert third.reason == "all is measured"
    assert len({measured.name for measured in again.measured}) == len(again.measured) == 2 * len(TOKENS)


def test_the_hosts_two_constants_are_found_in_spite_of_hold_ups():
    requests = np.tile(np.arange(1.0, 17.0), 4)
    seconds = 3e-4 + 2e-5 * requests
    seconds[::9] *= 5
    host = fit_host(requests, seconds)
    assert host.step_s == pytest.approx(3e-4, rel=0.05)
    assert host.per_request_s == pytest.approx(2e-5, rel=0.05)
