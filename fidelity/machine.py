"""What a measured run says of its machine beyond the names of model and accelerator."""

from simcore.cost.calibrated import available_profiles, load_profile
from simcore.cost.collectives import PCIE, PCIE_HOST, alpha_beta_constants
from simcore.cost.profile_choice import AUTO, fallback_profiles, needed_kinds
from simcore.hardware import Accelerator
from simcore.models import ModelSpec


def pcie_access(accelerator: Accelerator, stated_bytes_per_s: float | None) -> str:
    """How accelerators without links of their own reach each other, as ``cluster.pcie`` has it.

    The way whose all-reduces reach the nearer share of PCIe's rate to what the run states; "auto" if it states none, or
    the accelerator leaves no choice.
    """
    if accelerator.interconnect_bytes_per_s is not None or not accelerator.pcie_peer_to_peer:
        return "auto"
    if stated_bytes_per_s is None:
        return "auto"
    ways = {"peer": PCIE, "host": PCIE_HOST}
    reached = {
        name: alpha_beta_constants()[topology, "all_reduce"].efficiency * accelerator.pcie_bytes_per_s
        for name, topology in ways.items()
    }
    return min(reached, key=lambda name: abs(reached[name] / stated_bytes_per_s - 1))


def kernels_of(accelerator: str, engine: str, version: str, spec: ModelSpec) -> str:
    """The kernel profile of the engine version that was measured; "auto" if it and its fallbacks lack a part."""
    name = f"{engine}-{version}"
    if name not in available_profiles(accelerator):
        return AUTO
    profile, needed = load_profile(accelerator, name), needed_kinds(spec, 1)
    known = {*profile.provenance, *fallback_profiles(needed, profile, accelerator)}
    return name if needed <= known else AUTO
