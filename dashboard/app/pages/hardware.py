"""The model's operators on the roofline, what was measured on a GPU, and GPUs side by side."""

import streamlit as st

from dashboard.app.panels import choose_setup, draw, head, table
from dashboard.figures.roofline import roofline
from dashboard.formatting import DASH, number, seconds, share
from dashboard.what_if.hardware import accelerators, coverage
from simcore.build.explanation import explain_step, usual_shapes
from simcore.hardware import Accelerator

_NAMES = ("One decode", "As many decodes as fit", "A prompt", "Decodes beside a chunk")


def _fp8(gpu: Accelerator) -> str:
    rate = gpu.peak_flops_per_s.get("fp8")
    return DASH if rate is None else number(rate / 1e12)


def _links(gpu: Accelerator) -> str:
    rate = gpu.interconnect_bytes_per_s
    return DASH if rate is None else number(rate / 1e9)


head("Hardware", "How well a model's kernels use a GPU, and how well their prices are known.")
found = choose_setup("hardware_setup")
if found is not None:
    checked = found[1]
    st.subheader("Operators on the roofline")
    steps = [explain_step(checked.simulation, shape) for shape in usual_shapes(checked.simulation)]
    labels = [f"{name}: {step.shape}" for name, step in zip(_NAMES, steps, strict=True)]
    step = steps[labels.index(str(st.selectbox("Step", labels, key="roofline_step")))]
    st.caption(f"{seconds(step.seconds)}, MFU {share(step.mfu)}, MBU {share(step.mbu)}. {step.kernels}")
    words = "A dot per operator, its size by its share of the step's time, its colour by the source of its price."
    draw(roofline(step), "roofline", words)
    st.subheader("What was measured on it")
    rows = coverage(checked.simulation.accelerator.name)
    if rows:
        profiles = list(dict.fromkeys(row.profile for row in rows))
        newest = str(st.selectbox("Profile", profiles, index=len(profiles) - 1, key="profile"))
        rows = [row for row in rows if row.profile == newest]
        columns = {
            "Kernels": [row.kind.replace("_", " ") for row in rows],
            "Format": [row.dtype for row in rows],
            "Measurements": [f"{row.samples:,}" for row in rows],
            "Median error": [share(row.median) for row in rows],
            "P90 error": [share(row.p90) for row in rows],
        }
        table(columns, ("Measurements", "Median error", "P90 error"))
        st.caption("Errors are relative, of measurements held out of the fit (docs/results/kernel-fits.md).")
    else:
        st.info("No kernels were measured on this GPU: all prices are rooflines. Expect tens of per cent.")

st.subheader("GPUs side by side")
gpus = accelerators()
figures = {
    "BF16 (TFLOP/s)": [number(gpu.peak_flops_per_s["bf16"] / 1e12) for gpu in gpus],
    "FP8 (TFLOP/s)": [_fp8(gpu) for gpu in gpus],
    "Memory (GiB)": [number(gpu.memory_bytes / 2**30) for gpu in gpus],
    "Bandwidth (TB/s)": [number(gpu.memory_bandwidth_bytes_per_s / 1e12) for gpu in gpus],
    "Links (GB/s)": [_links(gpu) for gpu in gpus],
    "Power (W)": [number(float(gpu.tdp_w)) for gpu in gpus],
    "Price (USD/h)": [number(gpu.price_usd_per_h) for gpu in gpus],
    "Profiles": [", ".join(dict.fromkeys(row.profile for row in coverage(gpu.name))) or DASH for gpu in gpus],
}
table({"GPU": [gpu.title for gpu in gpus], **figures}, list(figures)[:-1])
st.caption("Datasheets, without structured sparsity; list prices. Sources stand in hardware_profiles/.")
