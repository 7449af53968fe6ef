"""Which matrices a quantised checkpoint leaves in 16 bits: patterns of module names, and the modules of a layer."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import translate

from simcore.models.recurrent import LinearAttention, Recurrent
from simcore.models.spec import LatentAttention, LayerGroup, MixtureOfExperts
from simcore.models.weight_formats import WEIGHT_FORMATS, Role, weight_format

_PREFIXES = ("model.", "language_model.model.", "model.language_model.", "language_model.", "")
"""What may stand before "layers" in the names of a checkpoint."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Regular expressions of the modules left out, and of those that alone are quantised (none: all others are)."""

    expressions: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @classmethod
    def of_names(cls, names: Iterable[str]) -> "LeftOut":
        """Patterns as checkpoints list them: "re:" before an expression, else a name, a part of one, or a wildcard."""
        return cls(tuple(_expression(name) for name in names))

    def and_expression(self, expression: str) -> "LeftOut":
        """These, and what an expression matches."""
        return replace(self, expressions=(*self.expressions, expression))

    def but_for(self, targets: Iterable[str]) -> "LeftOut":
        """These, and all that none of ``targets`` matches."""
        return replace(self, only=tuple(_expression(target) for target in targets))

    def leaves_out(self, module: str) -> bool:
        """Whether a module keeps 16 bits by its own name, which begins with "layers"."""
        return _matches(self.expressions, module)

    def targets(self, module: str) -> bool:
        """Whether a module is among those that are quantised at all."""
        return not self.only or _matches(self.only, module)


@dataclass(frozen=True, slots=True)
class CheckpointFormat:
    """The number formats of a checkpoint: of its matrices, and of the KV cache, where it says so."""

    weights: str
    kv_cache: str | None = None
    left_out: LeftOut = field(default_factory=LeftOut)

    def of_layers(self, layers: Iterable[LayerGroup]) -> tuple[str, list[LayerGroup], list[str]]:
        """The weight format, the layers with the roles they leave out, and what a user must know of it.

        Where the same roles are left out in all layers, and there is a format of just the others, it is that.
        """
        marked, notices = [], []
        for index, group in enumerate(layers):
            kept, parts = _kept_roles(self.left_out, index, group)
            marked.append(replace(group, kept=kept))
            notices += parts
        name = self._of_others(marked)
        if name is not None:
            return name, [replace(group, kept=frozenset()) for group in marked], notices
        return self.weights, marked, notices

    def _of_others(self, layers: list[LayerGroup]) -> str | None:
        own = weight_format(self.weights)
        quantised = {role for group in layers for role, _ in _modules(0, group) if role not in group.kept}
        if any(role in group.kept for group in layers for role in quantised):
            return None
        present = {role for group in layers for role, _ in _modules(0, group)}
        for other in WEIGHT_FORMATS.values():
            # The name is another and so are the roles; the numbers are the same.
            same = replace(other, name=own.name, of=own.of, kernels=own.kernels) == own
            if same and other.name != own.name and other.of & present == quantised and quantised != own.of & present:
                return other.name
        return None


def _expression(name: str) -> str:
    if name.startswith("re:"):
        return name.removeprefix("re:")
    if "*" in name:
        return translate(name)
    # The name of a module, of what is around it, or its last parts: whole parts between dots.
    return rf"(.*\.)?{re.escape(name)}(\..*)?$"


def _matches(expressions: Iterable[str], module: str) -> bool:
    names = [prefix + module for prefix in _PREFIXES]
    return any(re.match(expression, name) for expression in expressions for name in names)


def _kept_roles(left_out: LeftOut, index: int, group: LayerGroup) -> tuple[frozenset[Role], list[str]]:
    """Roles of which no module is quantised; a notice for each of which some are and some are not."""
    kept, notices = set(), []
    if not left_out.expressions and not left_out.only:
        return frozenset(), []
    for role, spellings in _modules(index, group):
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


def _modules(index: int, group: LayerGroup) -> Iterator[tuple[Role, list[list[str]]]]:
    """The matrices of each role in a layer, by each set of names that families have for them."""
    if group.attention is not None:
        blocks, into, out = _mixer(group)
        yield Role.ATTENTION, [_within(index, block, parts) for block in blocks for parts in into]
        yield Role.ATTENTION_OUTPUT, [_within(index, block, (out,)) for block in blocks]
    if group.feed_forward is None:
        return
    parts = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")
    blocks = ("mlp", "feed_forward", "block_sparse_moe")
    if not isinstance(group.feed_forward, MixtureOfExperts):
        yield Role.LINEAR, [_within(index, block, parts[0]) for block in blocks]
        return
    experts = [f"{block}.experts.0" for block in blocks]
    yield Role.EXPERT, [_within(index, block, names) for block in experts for names in parts]
    if group.feed_forward.shared_intermediate_size:
        shared = ("shared_experts", "shared_expert", "shared_mlp")
        yield Role.LINEAR, [_within(index, f"{block}.{name}", parts[0]) for block in blocks for name in shared]


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
