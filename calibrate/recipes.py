"""What the profiles that come with servetwin are made of: which tables of which public source, and of which kernels."""

from collections.abc import Iterator
from dataclasses import dataclass

from calibrate.profile_writer import Origin

BLOCKS = "fp8-block"
MARLIN = "mxfp4-marlin"
REPOSITORY = Origin(
    "github.com/ai-dynamo/aiconfigurator, commit 095f58a51c4ca8e61b66ec108d86f223f8d559ce", "Apache-2.0", "2026-11-29"
)
WHEEL = Origin("aiconfigurator-core 0.12.0 from PyPI", "Apache-2.0", "2026-11-29")
OLDER_WHEEL = Origin("aiconfigurator 0.10.0 from PyPI", "Apache-2.0", "2026-11-30")
OLDEST_WHEEL = Origin("aiconfigurator 0.8.0 from PyPI", "Apache-2.0", "2026-11-30")
LLMSERVINGSIM = Origin(
    "github.com/casys-kaist/LLMServingSim, commit 5daddb21a545658d5150b535712d0494584b5278", "MIT", "2026-11-29"
)


@dataclass(frozen=True, slots=True)
class Tables:
    """Kernel tables of one source: a folder, or a file, of a system's; all of a device for LLMServingSim.

    Of rows that have a dtype those named by ``only`` are taken, or all but those named by ``without``. ``stands_for``
    is the dtype that the rows are taken for: another kernel's, of nearly as many bytes. ``held_up_beside`` is a system
    of the same chip with less memory: launches of linear attention that took longer than there were held up. Of
    ``interrupted`` GEMMs those are left out that took half as long again as the same of more tokens, which a
    launch may be padded to. GEMMs of fewer than ``least_tokens`` are left out, where other kernels run. Latent
    attention of ``modules`` was measured whole: what it takes beside its GEMMs, in the same format, is attention.

    Shapes of which several tables hold the same kernel were measured repeatedly, whoever did it. The kernel is taken
    for the same where its name is, and what two tables differ by is not found again: ratios of the same two tables on
    the H100 and on the H200 do not go together, and a third is rarely faster than two that agree with each other.
    """

    origin: Origin
    path: str = ""
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    stands_for: str | None = None
    held_up_beside: str | None = None
    interrupted: bool = False
    least_tokens: int = 1
    modules: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """A profile, and the tables of a system (a device of LLMServingSim) that it is made of."""

    accelerator: str
    engine: str
    version: str
    system: str
    tables: tuple[Tables, ...]

    @property
    def name(self) -> str:
        """The profile's folder, below that of all profiles."""
        return f"{self.accelerator}/{self.engine}-{self.version}"


def _all_of(origin: Origin, engine: str, version: str, families: tuple[str, ...]) -> tuple[Tables, ...]:
    return tuple(Tables(origin, f"{family}/{engine}/{version}") for family in families)


def _collectives(*folders: str, origin: Origin = WHEEL) -> tuple[Tables, ...]:
    return tuple(Tables(origin, f"comm/{folder}") for folder in folders)


def _older_gemms(folder: str, *dtypes: str, least_tokens: int = 1) -> Tables:
    return Tables(OLDER_WHEEL, f"{folder}/gemm_perf.parquet", only=dtypes, least_tokens=least_tokens)


_INTEGERS = ("int4", "int8")
"""GEMMs of weights in int4 with 16-bit activations, and of both in int8 (SmoothQuant's), as TensorRT-LLM runs them:
no table holds another engine's. On the A100 and the L40S they were measured by a clock of 1.024 us, too coarse to check
a fit by."""
_TRTLLM_INTEGERS = {
    "h100_sxm": Tables(OLDEST_WHEEL, "trtllm/1.0.0rc3/gemm_perf.txt", only=_INTEGERS),
    "h200_sxm": _older_gemms("trtllm/1.2.0rc5", *_INTEGERS),
}


_NCCL = {
    "h100_sxm": ("nccl/2.29.2", "nccl/2.27.3"),
    "h200_sxm": ("nccl/2.29.2", "nccl/2.26.2"),
    "b200_sxm": ("nccl/2.29.2", "nccl/2.27.3"),
}
"""Releases of NCCL that run the same kernels: from 1 MiB on an operation among so many ranks takes as long within 1% in
the mean, all-to-all within 5%. On the B200 2.27.3 sends small messages faster, among two ranks by a tenth. By the same
measure 2.23 is 7% off on Hopper, and 2.27.5 and 2.28.9 are 3% on the B200."""


def _vllm_0_19(accelerator: str, system: str) -> Recipe:
    """All-reduces of vLLM's own take as long in 0.24."""
    own = _all_of(REPOSITORY, "vllm", "0.19.0", ("attention", "gemm", "moe", "comm"))
    return Recipe(accelerator, "vllm", "0.19.0", system, (*own, *_collectives("vllm/0.24.0", *_NCCL[system])))


def _vllm_0_24(accelerator: str, system: str, *others: Tables) -> Recipe:
    """``others`` are GEMMs, experts and collectives beside vLLM's own.

    Its own GEMMs in block-scaled fp8 hold the time to launch them from Python, 55 us or more however small they are.
    """
    own = _all_of(WHEEL, "vllm", "0.24.0", ("attention", "linear_attention"))
    return Recipe(accelerator, "vllm", "0.24.0", system, (*own, *others))


def _latent_modules(dtype: str) -> Tables:
    """vLLM's own latent attention of prompts, less GEMMs of a format whose table agrees with the modules.

    On Hopper that is bf16: those in block-scaled fp8 were launched from Python, which shows in short ones, and one on
    the H200 was held up. What modules in either leave differs by 2% from 2,048 to 16,384 tokens. On the B200 it is
    block-scaled fp8, whose modules and those in nvfp4 leave about the same, while GEMMs in bf16 take too long.
    """
    return Tables(WHEEL, "mla/vllm/0.24.0", only=(dtype,), modules=True)


_PRODUCTS = Tables(WHEEL, "gemm/vllm/0.24.0", without=(BLOCKS,))
_EXPERTS = Tables(WHEEL, "moe/vllm/0.24.0")
_FAMILIES = ("attention", "gemm", "moe", "mla", "linear_attention", "comm")


def _hopper(accelerator: str, system: str) -> Iterator[Recipe]:
    """vLLM 0.24, whose experts in mxfp4 run Marlin's kernels as those in int4 do, SGLang and TensorRT-LLM.

    SGLang's GEMMs were measured on a busy machine. cuBLAS multiplies bf16 in earlier releases and in vLLM as well.
    Of kernels in fp8 earlier releases have the same beyond 1,024 tokens alone, and none of those in block-scaled fp8.
    """
    yield _vllm_0_24(
        accelerator,
        system,
        _PRODUCTS,
        Tables(REPOSITORY, "gemm/vllm/0.19.0", only=(BLOCKS,)),
        Tables(WHEEL, "moe/vllm/0.24.0", without=(MARLIN,)),
        Tables(WHEEL, "moe/sglang/0.5.10", only=("int4",), stands_for=MARLIN),
        _latent_modules("bf16"),
        *_collectives("vllm/0.24.0", "vllm/0.19.0", *_NCCL[system]),
    )
    linear = Tables(
        WHEEL, "linear_attention/sglang/0.5.14", held_up_beside="h100_sxm" if system == "h200_sxm" else None
    )
    sglang = (
        *_all_of(WHEEL, "sglang", "0.5.14", ("attention", "gemm", "moe", "mla")),
        linear,
        Tables(WHEEL, "gemm/vllm/0.24.0", only=("bf16",)),
        _older_gemms("vllm/0.19.0", "bf16"),
        *(_older_gemms(f"sglang/{version}", "bf16") for version in ("0.5.10", "0.5.9")),
        *(_older_gemms(f"sglang/{version}", "fp8", least_tokens=1025) for version in ("0.5.10", "0.5.9")),
        *_collectives("sglang/0.5.14", *_NCCL[system]),
    )
    yield Recipe(accelerator, "sglang", "0.5.14", system, sglang)
    trtllm = _all_of(WHEEL, "trtllm", "1.3.0rc20", _FAMILIES)
    others = (_TRTLLM_INTEGERS[system], *_collectives("trtllm/1.3.0rc10", *_NCCL[system]))
    yield Recipe(accelerator, "trtllm", "1.3.0rc20", system, (*trtllm, *others))


def _b200() -> Iterator[Recipe]:
    """Most GEMMs were measured on a busy machine; those that another table has of the same kernel are repeats.

    DeepGEMM multiplies block-scaled fp8 in all three engines (but for one in eight of vLLM's shapes), FlashInfer's
    CuTe kernels nvfp4 in vLLM and in SGLang. Of vLLM's in fp8 one in thirteen was interrupted. Of experts in
    block-scaled fp8 TensorRT-LLM's table holds DeepGEMM alone; its own kernels, which it is mostly run with, were
    measured as SGLang runs them.
    """
    deep_gemm = Tables(WHEEL, "gemm/trtllm/1.3.0rc20", only=(BLOCKS,))
    yield _vllm_0_24(
        "b200",
        "b200_sxm",
        Tables(WHEEL, "gemm/vllm/0.24.0", only=("bf16", "nvfp4")),
        Tables(WHEEL, "gemm/vllm/0.24.0", only=("fp8",), interrupted=True),
        _older_gemms("vllm/0.19.0", "bf16"),
        deep_gemm,
        _EXPERTS,
        _latent_modules(BLOCKS),
        *_collectives("vllm/0.24.0", "vllm/0.19.0", *_NCCL["b200_sxm"]),
    )
    sglang = (
        *_all_of(WHEEL, "sglang", "0.5.14", _FAMILIES),
        *(_older_gemms(f"sglang/{version}", "bf16", "fp8") for version in ("0.5.10", "0.5.9")),
        _older_gemms("vllm/0.19.0", "bf16"),
        Tables(WHEEL, "gemm/vllm/0.24.0", only=("bf16", "nvfp4")),
        deep_gemm,
        *_collectives(*_NCCL["b200_sxm"]),
    )
    yield Recipe("b200", "sglang", "0.5.14", "b200_sxm", sglang)
    trtllm = (
        *_all_of(WHEEL, "trtllm", "1.3.0rc20", ("attention", "gemm", "mla", "linear_attention", "comm")),
        Tables(WHEEL, "moe/trtllm/1.3.0rc20"),
        Tables(WHEEL, "moe/sglang/0.5.14", only=(BLOCKS,)),
        *_collectives("trtllm/1.3.0rc10", *_NCCL["b200_sxm"]),
    )
    yield Recipe("b200", "trtllm", "1.3.0rc20", "b200_sxm", trtllm)


def _l40s() -> Recipe:
    """GEMMs in bf16 were measured twice as vLLM runs them; other engines have cuBLAS choose other kernels there."""
    return _vllm_0_24(
        "l40s",
        "l40s",
        _PRODUCTS,
        _older_gemms("vllm/0.22.0", "bf16"),
        _EXPERTS,
        *_collectives("vllm/0.22.0", "nccl/2.27.3"),
    )


RECIPES = (
    Recipe(
        "a100-sxm-80gb",
        "vllm",
        "0.14.0",
        "a100_sxm",
        (
            *_all_of(REPOSITORY, "vllm", "0.14.0", ("attention", "gemm", "moe")),
            *_collectives("vllm/0.14.0", "nccl/2.27.3", origin=REPOSITORY),
        ),
    ),
    _vllm_0_19("h100-sxm", "h100_sxm"),
    _vllm_0_19("h200-sxm", "h200_sxm"),
    *_hopper("h100-sxm", "h100_sxm"),
    *_hopper("h200-sxm", "h200_sxm"),
    *_b200(),
    _l40s(),
    _vllm_0_24(
        "rtx-pro-6000-blackwell",
        "rtx_pro_6000_server",
        _PRODUCTS,
        _EXPERTS,
        *_collectives("vllm/0.24.0", "nccl/2.29.2"),
    ),
    Recipe("rtx-pro-6000-blackwell", "vllm", "0.19.0", "RTXPRO6000", (Tables(LLMSERVINGSIM),)),
    Recipe("rtx-4090", "vllm", "0.19.0", "RTX4090", (Tables(LLMSERVINGSIM),)),
)
