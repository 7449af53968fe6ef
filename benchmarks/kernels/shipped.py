"""What kernels launch by themselves at the cases that were measured."""

from collections.abc import Iterable
from typing import Any

from benchmarks.kernels import MODULES, gemm, sweeps_of, w8a8
from benchmarks.kernels.measured import Candidate
from kernels.launch import LaunchConfig

REWRITTEN = frozenset({"w4a16"})
"""Kernels of which a former version was measured, whose launches say nothing of those of the present one."""


def shipped_configs(candidates: Iterable[Candidate]) -> dict[Any, LaunchConfig]:
    """By ``Candidate.place``; a place is missing where a sweep varies something other than launches.

    GEMMs are told for every measured shape, also those that are in no sweep any longer.
    """
    found = {}
    for module in MODULES:
        for sweep in sweeps_of(module):
            case = sweep.case
            if sweep.shipped is not None and case.kernel not in REWRITTEN:
                found[case.kernel, case.form, case.dtype, tuple(sorted(case.shape.items()))] = sweep.shipped
    for each in candidates:
        if each.kernel == "gemm":
            found[each.place] = gemm.shipped_config(each.shape)
        elif each.kernel == "w8a8":
            found[each.place] = w8a8.shipped_config(each.form, each.dtype, each.shape)
    return found
