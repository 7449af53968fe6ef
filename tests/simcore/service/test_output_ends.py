import pytest

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.service.output_ends import OutputEnds


class Service:
    """Ends of outputs and a pool, with the moves of a scheduler."""

    def __init__(self):
        self.ends, self.pool, self.admissions = OutputEnds(), DecodePool(16), 0

    def prefill(self, request, output_tokens=None):
        """Admit a request and sample its next token; join the pool unless that was the last."""
        if output_tokens is not None:
            self.ends.expect(request, output_tokens)
        self.admissions += 1
        request.admission = self.admissions
        last = self.ends.ends_next(request)
        request.known_output_tokens += 1
        if last:
            return True
        request.pool = self.pool
        request.origin = self.pool.join(request.prompt_tokens + request.known_output_tokens - 1)
        self.ends.follow(request)
        return False

    def leave(self, request):
        request.known_output_tokens = request.generated_tokens
        self.pool.leave(request.origin)
        request.pool = None


def test_requests_finish_after_as_many_steps_as_their_outputs_are_long():
    service = Service()
    long, short = Request(0, 0, 100), Request(1, 0, 7)
    assert not service.prefill(long, 6)
    service.pool.advance(2)
    assert not service.prefill(short, 3)
    assert service.ends.steps_to_next(service.pool) == 2
    service.pool.advance(2)
    assert service.ends.take(service.pool, 0) == [short]
    service.leave(short)
    assert service.ends.steps_to_next(service.pool) == 1
    service.pool.advance(1)
    assert service.ends.take(service.pool, 0) == [long]
    assert service.ends.forget(long) == 6


def test_those_that_finish_together_do_so_in_order_of_admission():
    service = Service()
    first, second = Request(5, 0, 10), Request(2, 0, 20)
    service.prefill(first, 4)
    service.prefill(second, 4)
    service.pool.advance(3)
    assert service.ends.take(service.pool, 0) == [first, second]


def test_a_single_token_is_over_with_the_prefill():
    service = Service()
    assert service.prefill(Request(0, 0, 10), 1)
    assert service.pool.size == 0


def test_a_preempted_request_finishes_later_and_once():
    """It comes back after one step of others: to the very origin in the pool that it had before."""
    service = Service()
    request, other = Request(0, 0, 10), Request(1, 0, 10)
    service.prefill(other, 100)
    service.prefill(request, 5)
    service.pool.advance(1)
    before = request.origin
    service.leave(request)
    service.pool.advance(1)
    service.prefill(request)
    assert request.origin == before
    assert request.generated_tokens == 3
    assert service.ends.steps_to_next(service.pool) == 2
    service.pool.advance(2)
    assert service.ends.take(service.pool, 0) == [request]


@pytest.mark.parametrize("stalls", [1, 3])
def test_a_stalled_request_finishes_as_much_later(stalls):
    service = Service()
    request, other = Request(0, 0, 10), Request(1, 0, 10)
    service.prefill(other, 100)
    service.prefill(request, 5)
    for _ in range(stalls):
        held = service.pool.leave(request.origin)
        service.pool.advance(1)
        request.origin = service.pool.join(held)
        service.ends.follow(request)
    service.pool.advance(3)
    assert service.ends.take(service.pool, 0) == []
    service.pool.advance(1)
    assert service.ends.take(service.pool, 0) == [request]
