"""Which matrices a quantised checkpoint leaves in 16 bits: patterns of module names, and the modules of a layer."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate

from simcore.models.recurrent import LinearAttention, Recurrent
from simcore.models.spec import LatentAttention, LayerGroup, MixtureOfExperts
from simcore.models.weight_formats import WEIGHT_FORMATS, Role, weight_format

_PREFIXES = ("model.", "language_model.model.", "model.language_model.", "language_model.", "backbone.", "")
"""What may stand before "layers" in the names of a checkpoint; each ends, by its last dots, with a shorter one."""
_PARTS_OF_PREFIXES = frozenset(prefix.removesuffix(".") for prefix in _PREFIXES if prefix)


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """Modules, told by whole parts of their names between dots, and by regular expressions of all of it."""

    parts: frozenset[str] = frozenset()
    expression: re.Pattern[str] | None = None

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "ModuleNames":
        """Patterns as checkpoints list them: "re:" before an expression, wildcards, else a name or a part of one."""
        parts, expressions = set(), []
        for pattern in patterns:
            if pattern.startswith("re:"):
                expressions.append(pattern.removeprefix("re:"))
            elif "*" in pattern:
                expressions.append(translate(pattern))
            else:
                parts.add(pattern)
        joined = "|".join(f"(?:{expression})" for expression in expressions)
        return cls(frozenset(parts), re.compile(joined) if joined else None)

    def __contains__(self, module: str) -> bool:
        names = [prefix + module for prefix in _PREFIXES]
        if self.expression is not None and any(self.expression.match(name) for name in names):
            return True
        return bool(self.parts) and not self.parts.isdisjoint(_runs(module))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The modules left out, and those that alone are quantised (None: all others are)."""

    names: ModuleNames = ModuleNames()
    only: ModuleNames | None = None

    def leaves_out(self, module: str) -> bool:
        """Whether a module keeps 16 bits by its own name, which begins with "layers"."""
        return module in self.names

    def targets(self, module: str) -> bool:
        """Whether a module is among those that are quantised at all."""
        return self.only is None or module in self.only


@dataclass(frozen=True, slots=True)
class CheckpointFormat:
    """The number formats of a checkpoint: of its matrices, and of the KV cache, where it says so."""

    weights: str
    kv_cache: str | None = None
    left_out: LeftOut = field(default_factory=LeftOut)

    def of_layers(self, layers: Iterable[LayerGroup], shared: Sequence[str]) -> tuple[str, list[LayerGroup], list[str]]:
        """The weight format, the layers with the roles they leave out, and what a user must know of it.

        ``shared`` are the names of experts that every token runs through, within a layer's feed-forward block.
        Where the same roles are left out in all layers, and there is a format of just the others, it is that.
        """
        marked, notices = [], []
        for index, group in enumerate(layers):
            kept, parts = _kept_roles(self.left_out, index, group, shared)
            marked.append(replace(group, kept=kept))
            notices += parts
        name = self._of_others(marked)
        if name is not None:
            return name, [replace(group, kept=frozenset()) for group in marked], notices
        return self.weights, marked, notices

    def _of_others(self, layers: list[LayerGroup]) -> str | None:
        own = weight_format(self.weights)
        quantised = {role for group in layers for role, _ in _modules(0, group, ("",)) if role not in group.kept}
        if any(role in group.kept for group in layers for role in quantised):
            return None
        present = {role for group in layers for role, _ in _modules(0, group, ("",))}
        for other in WEIGHT_FORMATS.values():
            # The name is another and so are the roles; the numbers are the same.
            same = replace(other, name=own.name, of=own.of, kernels=own.kernels) == own
            if same and other.name != own.name and other.of & present == quantised and quantised != own.of & present:
                return other.name
        return None


def _runs(module: str) -> Iterator[str]:
    """Parts in succession, joined by their dots, of all names that a module may have: each once, or a few times."""
    parts = module.split(".")
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            run = ".".join(parts[start:end])
            yield run
            if start == 0:
                yield from (f"{prefix}{run}" for prefix in _PREFIXES if prefix)
    yield from _PARTS_OF_PREFIXES


def _kept_roles(
    left_out: LeftOut, index: int, group: LayerGroup, shared: Sequence[str]
) -> tuple[frozenset[Role], list[str]]:
    """Roles of which no module is quantised; a notice for each of which some are and some are not."""
    kept, notices = set(), []
    if left_out == LeftOut():
        return frozenset(), []
    for role, spellings in _modules(index, group, shared):
        found = [[left_out.leaves_out(module) for module in modules] for modules in spellings]
        targeted = any(left_out.targets(module) for modules in spellings for module in modules)
        if any(all(one) for one in found) or not targeted:
            kept.add(role)
        elif any(any(one) for one in found):
            notices.append(
                f"The checkpoint leaves part of the {role.value} matrices of layer {index} in 16 bits; all of them are "
                f"taken as quantised."
            )
    return frozenset(kept), notices


def _modules(index: int, group: LayerGroup, shared: Sequence[str]) -> Iterator[tuple[Role, list[list[str]]]]:
    """The matrices of each role in a layer, by each set of names that families have for them."""
    if group.attention is not None:
        blocks, into, out = _mixer(group)
        yield Role.ATTENTION, [_within(index, block, parts) for block in blocks for parts in into]
        yield Role.ATTENTION_OUTPUT, [_within(index, block, (out,)) for block in blocks]
    if group.feed_forward is None:
        return
    gated = group.feed_forward.gated
    parts = [("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")] if gated else [("up_proj", "down_proj")]
    blocks = ("mlp", "feed_forward", "block_sparse_moe", "mixer")
    if not isinstance(group.feed_forward, MixtureOfExperts):
        yield Role.LINEAR, [_within(index, block, parts[0]) for block in blocks]
        return
    # Where the block beside experts goes by no name of its own, they are no part of it (Gemma 4).
    experts = ["experts.0"] if "" in shared else [f"{block}.experts.0" for block in blocks]
    yield Role.EXPERT, [_within(index, block, names) for block in experts for names in parts]
    if group.feed_forward.shared_intermediate_size:
        # Names end in a dot, but for the one of a dense block beside the experts.
        names = [[f"{name}{part}" for part in parts[0]] for name in shared]
        yield Role.LINEAR, [_within(index, block, spelt) for block in blocks for spelt in names]


def _mixer(group: LayerGroup) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """Names of the block that mixes tokens, of its matrices in (by each set of names), and of its matrix out."""
    attention = group.attention
    if isinstance(attention, LinearAttention):
        return ("linear_attn",), (("in_proj_qkvz",), ("in_proj_qkv", "in_proj_z")), "out_proj"
    if isinstance(attention, Recurrent):
        return ("mixer", "mamba", "conv"), (("in_proj",),), "out_proj"
    if isinstance(attention, LatentAttention):
        query = ("q_proj",) if attention.q_lora_rank is None else ("q_a_proj", "q_b_proj")
        return ("self_attn",), ((*query, "kv_a_proj_with_mqa", "kv_b_proj"),), "o_proj"
    return ("self_attn", "mixer"), (("q_proj", "k_proj", "v_proj"), ("qkv_proj",)), "o_proj"


def _within(index: int, block: str, parts: Iterable[str]) -> list[str]:
    return [f"layers.{index}.{block}.{part}" for part in parts]
