"""Chance that depends on a seed and a request alone: no generator whose state would depend on who asked before."""

from math import cos, log, pi, sqrt

_MASK = (1 << 64) - 1


def uniform(seed: int, number: int, stream: int = 0) -> float:
    """A number between 0 and 1 (both excluded), the same for the same arguments (SplitMix64, Steele et al. 2014)."""
    state = (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB) & _MASK
    for _ in range(2):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return ((state >> 11) + 0.5) / (1 << 53)


def normal(seed: int, number: int) -> float:
    """A standard normal number, the same for the same arguments (Box and Muller 1958)."""
    return sqrt(-2 * log(uniform(seed, number, 0))) * cos(2 * pi * uniform(seed, number, 1))
