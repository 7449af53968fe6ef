"""``python -m tools.fuzz``: try mutated inputs of every kind."""

import argparse
import sys

from tools.fuzz.run import fuzz
from tools.fuzz.targets import TARGETS

_SHOWN = 20


def main() -> int:
    """Try so many inputs, print what came of them; exit code 1 if any was not answered rightly."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--kind", choices=sorted(TARGETS), action="append")
    asked = parser.parse_args()
    kinds = asked.kind or sorted(TARGETS)
    outcome = fuzz(kinds, range(asked.first, asked.first + asked.inputs), asked.seconds)
    for kind in kinds:
        print(f"{kind}: {outcome.read.get(kind, 0):,} read, {outcome.refused.get(kind, 0):,} refused")
    for kind, seed, problem in outcome.failures[:_SHOWN]:
        print(f"\n{kind}, seed {seed}:\n{problem}")
    print(f"{outcome.tried:,} inputs, {len(outcome.failures):,} not answered rightly")
    return 1 if outcome.failures else 0


sys.exit(main())
