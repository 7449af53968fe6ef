"""A forward pass as its definition reads: one sequence, no cache, no batch; what other passes are held against."""

import torch

from live.model.linear import Linear
from live.model.rotary import rotary_table
from live.model.weights import DecoderWeights, DenseWeights, LayerWeights, RoutedWeights


@torch.inference_mode()
def plain_logits(weights: DecoderWeights, tokens: list[int]) -> torch.Tensor:
    """Logits [tokens, vocabulary] after each token of a sequence, in float32."""
    return _Pass(weights, len(tokens)).logits(torch.tensor(tokens, device=weights.device))


def plain_greedy(weights: DecoderWeights, prompt: list[int], count: int) -> list[int]:
    """The ``count`` tokens that follow a prompt, each the likeliest after a pass over all before it."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(plain_logits(weights, tokens)[-1].argmax()))
    return tokens[len(prompt) :]


def _linear(layer: Linear, x: torch.Tensor) -> torch.Tensor:
    weight, bias = layer.dense()
    product = x @ weight.to(x.dtype).T
    return product if bias is None else product + bias


class _Pass:
    def __init__(self, weights: DecoderWeights, length: int) -> None:
        self.weights = weights
        head_dim = weights.config.attention.head_dim
        table = rotary_table(weights.config, length, weights.device)
        self.cos, self.sin = (part.repeat(1, 2)[:, None] for part in table.split(head_dim // 2, dim=1))
        places = torch.arange(length, device=weights.device)
        self.distance = places[:, None] - places

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.weights.embedding[tokens]
        for layer in self.weights.layers:
            x = x + self.attention(layer, self.norm(x, layer.input_norm))
            normed = self.norm(x, layer.middle_norm)
            block = layer.feed_forward
            x = x + (self.dense(block, normed) if isinstance(block, DenseWeights) else self.routed(block, normed))
        return _linear(self.weights.head, self.norm(x, self.weights.final_norm)).float()

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        square = x.float().pow(2).mean(-1, keepdim=True)
        return (x.float() * torch.rsqrt(square + self.weights.config.rms_epsilon)).to(x.dtype) * weight

    def rotated(self, heads: torch.Tensor) -> torch.Tensor:
        """Su et al. (2021), pairs half a head apart."""
        first, second = heads.chunk(2, dim=-1)
        return (heads * self.cos + torch.cat([-second, first], dim=-1) * self.sin).to(heads.dtype)

    def attention(self, layer: LayerWeights, x: torch.Tensor) -> torch.Tensor:
        form = layer.attention
        heads, kv_heads = form.query_heads, form.kv_heads
        projected = _linear(layer.qkv, x).unflatten(1, (-1, form.head_dim))
        q, k, v = projected.split([heads, kv_heads, kv_heads], dim=1)
        if layer.query_norm is not None and layer.key_norm is not None:
            q, k = self.norm(q, layer.query_norm), self.norm(k, layer.key_norm)
        q, k = self.rotated(q), self.rotated(k)
        group = heads // kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        scores = torch.einsum("qhd,khd->hqk", q, k).float() * form.head_dim**-0.5
        seen = (self.distance >= 0) & (self.distance < (form.window_tokens or len(x)))
        shares = scores.masked_fill(~seen, -torch.inf).softmax(-1).to(v.dtype)
        return _linear(layer.output, torch.einsum("hqk,khd->qhd", shares, v).flatten(1))

    def dense(self, block: DenseWeights, x: torch.Tensor) -> torch.Tensor:
        gate, up = _linear(block.gate_up, x).chunk(2, dim=-1)
        return _linear(block.down, torch.nn.functional.silu(gate) * up)

    def routed(self, block: RoutedWeights, x: torch.Tensor) -> torch.Tensor:
        """Each token's likeliest experts, weighted (Shazeer et al., 2017)."""
        shares = _linear(block.router, x).float().softmax(-1)
        shares, chosen = shares.topk(block.experts_per_token, dim=-1)
        if self.weights.config.renormalise_experts:
            shares = shares / shares.sum(-1, keepdim=True)
        rows = []
        for token, (ids, parts) in zip(x, zip(chosen.tolist(), shares, strict=True), strict=True):
            outputs = []
            for expert in ids:
                gate, up = (block.experts.gate_up[expert] @ token).chunk(2)
                outputs.append(block.experts.down[expert] @ (torch.nn.functional.silu(gate) * up))
            rows.append((torch.stack(outputs) * parts[:, None].to(token.dtype)).sum(0))
        return torch.stack(rows)
