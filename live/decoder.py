"""One forward pass of a flat batch over paged keys and values."""

import torch

from live.backends.base import Attending, Backend
from live.model.rotary import rotary_table
from live.model.weights import DecoderWeights, DenseWeights, LayerWeights
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import StepBatch


class Decoder:
    """A model and who computes it; ``positions`` bounds the context, for which rotations are tabulated."""

    def __init__(self, weights: DecoderWeights, backend: Backend, positions: int) -> None:
        self.weights, self.backend = weights, backend
        self.config = weights.config
        self.cos_sin = rotary_table(weights.config, positions, weights.device)

    @torch.inference_mode()
    def logits(self, step: StepBatch, kv: KVTensors) -> torch.Tensor:
        """Logits [rows, vocabulary] after the tokens that ``step.logit_rows`` names, in the type of the model.

        Keys and values of all tokens of the step are in ``kv`` afterwards.
        """
        backend, epsilon = self.backend, self.config.rms_epsilon
        attending = backend.attention(step, self.cos_sin, kv)
        residual = backend.embed(self.weights.embedding, step.tokens)
        normed = backend.rms_norm(residual, self.weights.layers[0].input_norm, epsilon)
        norms = [layer.input_norm for layer in self.weights.layers[1:]]
        for index, (layer, following) in enumerate(zip(self.weights.layers, [*norms, None], strict=True)):
            attended = self._attention(index, layer, normed, attending)
            normed, residual = backend.add_rms_norm(attended, residual, layer.middle_norm, epsilon)
            out = self._feed_forward(layer, normed)
            if following is not None:
                normed, residual = backend.add_rms_norm(out, residual, following, epsilon)
        rows = step.logit_rows
        last, _ = backend.add_rms_norm(out[rows], residual[rows], self.weights.final_norm, epsilon)
        return self.weights.head.apply(last, backend.multiply)

    def _attention(self, index: int, layer: LayerWeights, x: torch.Tensor, attending: Attending) -> torch.Tensor:
        form, backend = layer.attention, self.backend
        joint = layer.qkv.apply(x, backend.multiply).view(len(x), -1, form.head_dim)
        queries, keys, values = joint.split([form.query_heads, form.kv_heads, form.kv_heads], dim=1)
        if layer.query_norm is not None and layer.key_norm is not None:
            queries = backend.rms_norm(queries, layer.query_norm, self.config.rms_epsilon)
            keys = backend.rms_norm(keys, layer.key_norm, self.config.rms_epsilon)
        queries, keys = attending.write(index, queries, keys, values)
        attended = attending.attend(index, form, queries, keys, values)
        return layer.output.apply(attended.reshape(len(x), -1), backend.multiply)

    def _feed_forward(self, layer: LayerWeights, x: torch.Tensor) -> torch.Tensor:
        block, backend = layer.feed_forward, self.backend
        if isinstance(block, DenseWeights):
            return block.down.apply(backend.silu_mul(block.gate_up.apply(x, backend.multiply)), backend.multiply)
        logits = block.router.apply(x, backend.multiply)
        return backend.routed(x, logits, block, self.config.renormalise_experts)
