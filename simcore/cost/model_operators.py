"""The operators of a transformer's forward pass, in the order in which a layer runs them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from simcore.cost.operators import AllReduce, ExpertMatrices, Matrix, Operator, QuantisedInputs
from simcore.cost.quantisation import Input, apart_from, quantised_inputs
from simcore.cost.split import Split
from simcore.engines import ASSUMED_KERNELS, EngineKernels
from simcore.models import (
    Attention,
    CachedAttention,
    DenseFeedForward,
    FeedForward,
    LayerGroup,
    LinearAttention,
    ModelSpec,
    Recurrent,
    StateSpace,
    heads_per_rank,
)
from simcore.models.weight_formats import ACTIVATION_BYTES, WEIGHT_FORMATS, Role, WeightFormat, weight_format

SIXTEEN_BITS = WEIGHT_FORMATS["bf16"]

ROUTER_SCORE_ELEMENTS = 2
"""The router's scores are read in 32 bits, and few are kept."""
SHARED_GATING_ELEMENTS = 5
"""The gate's product with the shared expert's output (read and written) and the sum of that and the routed experts'
(SGLang, srt/models/qwen2_moe.py)."""
NORM_SUM_BYTES = 8
"""A sum of squares each of queries and keys, in 32 bits."""
SAMPLING_ELEMENTS = 5
"""Greedy sampling reads a row's logits, writes them in 32 bits and reads these for the largest, in elements of 16 bits
(vLLM, v1/sample/sampler.py; recalled). Temperatures and nuclei take more."""


def layer_operators(
    spec: ModelSpec, weight_dtype: str, ranks: int, split: Split | None = None, engine: EngineKernels = ASSUMED_KERNELS
) -> Iterator[Operator]:
    """The operators of all layers on one of ``ranks`` tensor-parallel ranks (Megatron-LM, arXiv:1909.08053).

    ``split`` says where experts are, if not split over the same ranks; they see the tokens of all data-parallel ranks.
    """
    split = split or Split(tensor=ranks)
    hidden, stored = spec.hidden_size, weight_format(weight_dtype)
    for group in spec.layer_groups:
        # What a checkpoint leaves in 16 bits counts in its own format, not in one that a scenario asks for.
        kept = group.kept if weight_dtype == spec.dtype else frozenset()
        own = replace(stored, of=stored.of - kept)
        build = _OperatorBuilder(group.count, own, ranks, engine)
        # The residual is read and written in the norm that follows each block, beside its input and output.
        elements = 2 * (spec.norms_per_layer + group.blocks) * hidden
        norms = build.elementwise("norm", elements, spec.norms_per_layer)
        summed_bytes = engine.fusion.all_reduce_norm_bytes if ranks > 1 else 0
        summed_tokens = summed_bytes // int(hidden * ACTIVATION_BYTES)
        yield replace(norms, beside_tokens=summed_tokens)
        yield from _projections(build, group.attention, hidden)
        yield from _feed_forward(build, group.feed_forward, hidden, split)
        if stored.quantises_activations:
            inputs = quantised_inputs(group, own, hidden, ranks, engine)
            yield from _quantisation(build, inputs, summed_tokens)


def _quantisation(build: "_OperatorBuilder", inputs: list[Input], summed_tokens: int) -> Iterator[Operator]:
    """The inputs of GEMMs that are quantised by kernels of their own; those of norms not where all-reduces norm."""
    if not inputs:
        return
    apart = apart_from(inputs, build.stored, build.engine)
    if not apart:
        within = " and ".join(sorted({made_by for made_by, _ in inputs}))
        yield Operator("activation_quantisation", build.count, 0.0, 0.0, 0.0, launches=0, within=within)
    of_norms = [numbers for made_by, numbers in apart if made_by == "norm"]
    others = [numbers for made_by, numbers in apart if made_by != "norm"]
    for found, beside_tokens in ((of_norms, summed_tokens), (others, 0)):
        if found:
            kernels = build.elementwise("activation_quantisation", sum(found) * 3 // 2, len(found))
            yield replace(kernels, shape=QuantisedInputs(build.stored.name), beside_tokens=beside_tokens)


def embedding_operators(spec: ModelSpec) -> Iterator[Operator]:
    """What comes before the first layer: a row of the embedding for each token, and one of learned positions added."""
    read, launches = (2, 3) if spec.learned_positions else (1, 1)  # looking up, twice, and adding
    yield _OperatorBuilder(1, SIXTEEN_BITS, 1).elementwise("embedding", (read + 1) * spec.hidden_size, launches)


def final_norm_operators(spec: ModelSpec) -> Iterator[Operator]:
    """What comes after the last layer: a norm of all tokens, which adds the last residual."""
    if spec.final_norm:
        yield _OperatorBuilder(1, SIXTEEN_BITS, 1).elementwise("final_norm", 4 * spec.hidden_size)


def all_reduces(spec: ModelSpec, exchanges: int = 0, embeds: bool = True) -> Iterator[AllReduce]:
    """What tensor-parallel ranks sum up: after attention, after the MLP, and for norms of all heads.

    Of the MLPs, so many exchange tokens instead. With ``embeds`` it is also rows of the embedding, which is split over
    the vocabulary (Megatron-LM, arXiv:1909.08053, section 3).
    """
    hidden_bytes = spec.hidden_size * int(ACTIVATION_BYTES)
    sums = sum(group.count * (1 if spec.parallel_blocks else group.blocks) for group in spec.layer_groups)
    yield AllReduce("all_reduce", sums - exchanges, hidden_bytes)
    if embeds:
        yield AllReduce("embedding_all_reduce", 1, hidden_bytes)
    summed = sum(group.count for group in spec.layer_groups if _norm_across_heads(group))
    if summed:
        yield AllReduce("query_key_norm_all_reduce", summed, NORM_SUM_BYTES)


def _norm_across_heads(group: LayerGroup) -> bool:
    return isinstance(group.attention, Attention) and group.attention.norm_across_heads


def head_operators(spec: ModelSpec, ranks: int, weight_dtype: str = "bf16") -> Iterator[Operator]:
    """The operators that run once per sampled token: the output head, split over the vocabulary, and sampling.

    The head has 16 bits, or 32 where all weights have.
    """
    width = spec.embedding_size or spec.hidden_size
    wide = weight_format(weight_dtype).others_bytes == WEIGHT_FORMATS["fp32"].others_bytes
    build = _OperatorBuilder(1, WEIGHT_FORMATS["fp32"] if wide else SIXTEEN_BITS, ranks)
    yield build.matmul("head", width, spec.vocabulary_size, split="columns")
    yield build.elementwise("sampling", SAMPLING_ELEMENTS * spec.vocabulary_size)


@dataclass(frozen=True, slots=True)
class _OperatorBuilder:
    count: int
    stored: WeightFormat
    ranks: int
    engine: EngineKernels = ASSUMED_KERNELS

    def of(self, role: Role) -> "_OperatorBuilder":
        """The same for matrices of one role, which keep 16 bits if the format is not for them."""
        return self if role in self.stored.of else replace(self, stored=SIXTEEN_BITS)

    def matmul(self, name: str, inputs: int, outputs: int, split: str | None = None) -> Operator:
        """A GEMM whose weight is split over the ranks by "columns" (outputs), "rows" (inputs) or not."""
        if split == "columns":
            outputs = -(-outputs // self.ranks)
        elif split == "rows":
            inputs = -(-inputs // self.ranks)
        return Operator(
            name,
            self.count,
            flops_per_token=2.0 * inputs * outputs,
            weight_bytes=self.stored.matrix_bytes(outputs, inputs),
            activation_bytes_per_token=(inputs + outputs) * ACTIVATION_BYTES,
            shape=Matrix(self.stored.name, outputs, inputs),
        )

    def elementwise(self, name: str, elements_per_token: int, launches: int = 1) -> Operator:
        """A kernel that reads and writes, and computes next to nothing."""
        within = self.engine.fusion.host_of(name, self.ranks)
        if within:
            return Operator(name, self.count, 0.0, 0.0, 0.0, launches=0, within=within)
        return Operator(name, self.count, 0.0, 0.0, elements_per_token * ACTIVATION_BYTES, launches=launches)


def _projections(
    everywhere: _OperatorBuilder, attention: CachedAttention | Recurrent | None, hidden: int
) -> Iterator[Operator]:
    if attention is None:
        return
    if isinstance(attention, Recurrent):
        yield from _recurrent_projections(everywhere, attention, hidden)
        return
    heads, build = attention.query_heads, everywhere.of(Role.ATTENTION)
    if isinstance(attention, Attention):
        query = heads * attention.head_dim
        kv_heads = heads_per_rank(attention.kv_heads, build.ranks) * build.ranks
        key_value = kv_heads * (attention.head_dim + attention.value_head_dim)
        gate = query if attention.output_gate else 0
        projected = key_value - (kv_heads * attention.value_head_dim if attention.keys_as_values else 0)
        yield build.matmul("qkv_projection", hidden, query + gate + projected, split="columns")
        if attention.query_key_norm:
            normed = query + kv_heads * attention.head_dim
            launches = build.engine.launches.query_key_norm_across_heads if attention.norm_across_heads else 2
            yield build.elementwise("query_key_norm", 2 * -(-normed // build.ranks), launches)
        if attention.rotary:
            yield build.elementwise("rotary_and_kv_write", 2 * -(-(query + key_value) // build.ranks), launches=2)
        else:
            yield build.elementwise("kv_write", 2 * -(-key_value // build.ranks))
        if gate:
            yield build.elementwise("output_gate", 3 * -(-gate // build.ranks))
    else:
        key_dim = attention.nope_head_dim + attention.rope_head_dim
        latent = attention.kv_lora_rank + attention.rope_head_dim
        if attention.q_lora_rank is None:
            yield build.matmul("query_projection", hidden, heads * key_dim, split="columns")
            yield build.matmul("latent_projection", hidden, latent)
        else:
            yield build.matmul("latent_projection", hidden, attention.q_lora_rank + latent)
            yield build.matmul("query_projection", attention.q_lora_rank, heads * key_dim, split="columns")
        if attention.index_heads:
            index = attention.index_heads * attention.index_head_dim
            plain = everywhere.of(Role.GATE)
            yield plain.matmul("index_query_projection", attention.q_lora_rank or hidden, index)
            yield plain.matmul("index_projection", hidden, attention.index_head_dim + attention.index_heads)
            yield plain.elementwise("index_key_write", 2 * (index + attention.index_head_dim), launches=3)
        expanded = heads * (attention.nope_head_dim + attention.value_head_dim)
        yield build.matmul("latent_expansion", attention.kv_lora_rank, expanded, split="columns")
        own_heads = -(-heads // build.ranks)
        joined = latent + (attention.q_lora_rank or 0) + own_heads * (latent + attention.value_head_dim)
        yield build.elementwise("latent_layout", 2 * joined, build.engine.launches.latent_projections)
        rotary = own_heads * attention.rope_head_dim + latent
        yield build.elementwise("rotary_and_kv_write", 2 * rotary, launches=2)
    output = everywhere.of(Role.ATTENTION_OUTPUT)
    yield output.matmul("output_projection", heads * attention.value_head_dim, hidden, split="rows")


def _recurrent_projections(everywhere: _OperatorBuilder, attention: Recurrent, hidden: int) -> Iterator[Operator]:
    """Queries, keys, values and gates of the output; two gates of the state for each head; norm and output.

    State spaces and short convolutions have all of them in one matrix; Mamba-1 makes a channel's steps from its inputs.
    """
    heads, values = attention.value_heads, attention.value_heads * attention.value_head_dim
    build, gates = everywhere.of(Role.ATTENTION), everywhere.of(Role.GATE)
    if not isinstance(attention, LinearAttention):
        yield build.matmul("linear_projection", hidden, attention.projected, split="columns")
        if isinstance(attention, StateSpace) and attention.step_rank is not None:
            yield gates.matmul("state_projection", values, attention.step_rank + 2 * attention.state_size, split="rows")
            yield gates.matmul("step_projection", attention.step_rank, values, split="columns")
    elif attention.gate_rank is not None:
        yield build.matmul("linear_projection", hidden, attention.convolved, split="columns")
        yield gates.matmul("state_gate_projection", hidden, heads, split="columns")
        yield gates.matmul("gate_latent_projection", hidden, 2 * attention.gate_rank)
        yield replace(gates, count=2 * gates.count).matmul(
            "gate_projection", attention.gate_rank, values, split="columns"
        )
    elif attention.apart and not everywhere.engine.fuses_linear_attention_projections:
        yield build.matmul("linear_projection", hidden, attention.convolved, split="columns")
        yield build.matmul("output_gate_projection", hidden, values, split="columns")
        yield replace(gates, count=2 * gates.count).matmul("state_gate_projection", hidden, heads, split="columns")
    else:
        yield build.matmul("linear_projection", hidden, attention.convolved + values, split="columns")
        yield gates.matmul("state_gate_projection", hidden, 2 * heads, split="columns")
    yield build.elementwise("gated_norm", 3 * -(-values // build.ranks))
    output = everywhere.of(Role.ATTENTION_OUTPUT)
    yield output.matmul("output_projection", values, hidden, split="rows")


def _feed_forward(build: _OperatorBuilder, block: FeedForward | None, hidden: int, split: Split) -> Iterator[Operator]:
    if block is None:
        return
    up_matrices = 2 if block.gated else 1
    if isinstance(block, DenseFeedForward):
        yield from _mlp(build.of(Role.LINEAR), "mlp", hidden, block.intermediate_size, up_matrices)
        return
    stored = build.of(Role.EXPERT).stored
    wide = build.stored if build.stored.name == "fp32" else WEIGHT_FORMATS[block.router_dtype]
    router = _OperatorBuilder(build.count, wide, build.ranks)
    yield router.matmul("router", hidden, block.experts)
    yield build.elementwise("expert_choice", ROUTER_SCORE_ELEMENTS * block.experts)
    if block.shared_intermediate_size:
        shared = _mlp(build.of(Role.LINEAR), "shared_expert", hidden, block.shared_intermediate_size, up_matrices)
        beside = build.engine.fusion.shared_expert_tokens
        yield from (replace(operator, beside_tokens=beside) for operator in shared)
    if block.shared_gate:
        yield replace(build, stored=SIXTEEN_BITS).matmul("shared_expert_gate", hidden, 1)
        launches = build.engine.launches.shared_expert_gating
        yield build.elementwise("shared_expert_gating", SHARED_GATING_ELEMENTS * hidden, launches)
    if block.latent_size is not None:
        latent = build.of(Role.LINEAR)
        yield latent.matmul("expert_latent_down", hidden, block.latent_size)
        yield latent.matmul("expert_latent_up", block.latent_size, hidden)
        hidden = block.latent_size
    width = -(-block.expert_intermediate_size // split.expert_tensor)
    weights = (up_matrices + 1) * hidden * width
    yield Operator(
        "experts",
        build.count,
        flops_per_token=2.0 * weights * block.experts_per_token * split.load / split.expert,
        # Of an expert, the part that one expert rank holds of all of them.
        weight_bytes=(up_matrices * stored.matrix_bytes(width, hidden) + stored.matrix_bytes(hidden, width))
        / split.expert,
        activation_bytes_per_token=block.experts_per_token
        * (2 * hidden + 3 * width)
        * ACTIVATION_BYTES
        * split.load
        / split.expert,
        experts=block.experts,
        experts_per_token=block.experts_per_token,
        shape=ExpertMatrices(
            stored.name, hidden, block.expert_intermediate_size, split.expert_tensor, split.expert, split.load
        )
        if block.gated
        else None,
        launches=build.engine.launches.experts,
        small_launches=build.engine.launches.experts - build.engine.launches.expert_gemms,
    )


def _mlp(build: _OperatorBuilder, name: str, hidden: int, width: int, up_matrices: int) -> Iterator[Operator]:
    yield build.matmul(f"{name}_up", hidden, up_matrices * width, split="columns")
    yield build.elementwise(f"{name}_activation", (up_matrices + 1) * -(-width // build.ranks))
    yield build.matmul(f"{name}_down", width, hidden, split="rows")
