"""Parallel sampling: requests that ask for several outputs to one prompt."""

from dataclasses import dataclass, replace

import numpy as np

from simcore.workload.batch import RequestBatch
from simcore.workload.contents import exclusive_sums
from simcore.workload.lengths import LengthDistribution
from simcore.workload.streams import random_stream
from simcore.workload.transformed import Transform

_FIRST_IDENTITY = 2**61
"""Where the identities of further samples' outputs begin: beyond all others of a workload."""


@dataclass(frozen=True, slots=True)
class Samples:
    """``count`` sequences for each request, one after another, with the same prompt and outputs of their own.

    That is how vLLM V1 serves ``n`` (its ``ParentRequest``): each sample is a request of its own to the scheduler, and
    only the prefix cache makes them share their prompt. The first keeps its request's output; the lengths of the others
    are drawn from ``output``.
    """

    count: int
    output: LengthDistribution

    def start(self, seed: int) -> Transform:
        """The further outputs that belong to ``seed``, from their beginning; requests must have contents."""
        random = random_stream(seed, "samples")
        next_identity = _FIRST_IDENTITY

        def sample(requests: RequestBatch) -> RequestBatch:
            nonlocal next_identity
            assert requests.contents is not None
            places = np.repeat(np.arange(len(requests)), self.count)
            further = np.arange(len(places)) % self.count > 0
            sequences = requests.at(places)
            assert sequences.contents is not None
            output_tokens = sequences.output_tokens.copy()
            output_tokens[further] = self.output.quantile(random.random(int(further.sum())))
            sums = next_identity + exclusive_sums(output_tokens[further])
            next_identity = int(sums[-1])
            output_first = sequences.contents.output_first.copy()
            output_first[further] = sums[:-1]
            contents = replace(sequences.contents, output_first=output_first)
            return replace(sequences, output_tokens=output_tokens, contents=contents).cut_to_limits()

        return sample
