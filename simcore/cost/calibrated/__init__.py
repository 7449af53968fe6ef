"""Prices of kernels from measurements: what ``calibrate`` fitted and ``hardware_profiles`` holds.

``available_profiles`` says what there is for an accelerator, ``load_profile`` reads one, and a ``KernelProfile`` prices
GEMMs, attention, linear attention, experts, collectives, norms and activations, or says that it has no data (None), in
which case the roofline must do.
"""

from simcore.cost.calibrated.context import ContextPrice
from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.gemm import GemmPrice
from simcore.cost.calibrated.generation import GenerationPrice
from simcore.cost.calibrated.linear_attention import LinearAttentionPrice
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.profile import KernelProfile, Provenance, available_profiles, load_profile

__all__ = [
    "ContextPrice",
    "Curve",
    "CurvePrice",
    "ErrorQuantiles",
    "GemmPrice",
    "GenerationPrice",
    "KernelProfile",
    "LinearAttentionPrice",
    "Provenance",
    "Source",
    "available_profiles",
    "load_profile",
]
