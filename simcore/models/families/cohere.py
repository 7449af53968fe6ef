"""Command R, R7B and A."""

from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from simcore.models.families.base import UniformConfig, WindowedConfig


class CohereConfig(UniformConfig):
    """Command R: attention and dense block read one norm; the head is tied to the embedding."""

    model_types: ClassVar[tuple[str, ...]] = ("cohere",)
    architectures: ClassVar[tuple[str, ...]] = ("CohereForCausalLM",)

    tie_word_embeddings: bool = True
    attention_bias: bool = False
    use_qk_norm: bool = False
    use_parallel_block: Literal[True] = True
    use_gated_activation: Literal[True] = True

    def attention_traits(self) -> dict[str, bool]:
        """Norms of each head in Command R+; one switch for the biases of all four projections."""
        bias = {"projection_bias": self.attention_bias, "output_bias": self.attention_bias}
        return bias | {"query_key_norm": self.use_qk_norm}

    def particulars(self) -> dict[str, Any]:
        """One norm for both blocks."""
        return {"norms_per_layer": 1, "parallel_blocks": True}


class Cohere2Config(WindowedConfig, CohereConfig):
    """Command R7B and A: three layers of four slide."""

    model_types: ClassVar[tuple[str, ...]] = ("cohere2",)
    architectures: ClassVar[tuple[str, ...]] = ("Cohere2ForCausalLM",)

    tie_word_embeddings: bool = True
    head_dim: PositiveInt | None = None
    sliding_window_pattern: PositiveInt = 4
    order_of_interleaved_layers: str | None = None
    layer_switch: int | None = None

    def slides(self, index: int) -> bool:
        """Every ``sliding_window_pattern``-th layer is global."""
        return (index + 1) % self.sliding_window_pattern != 0
