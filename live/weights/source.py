"""One way to ask for weights, wherever they come from: by the name that Hugging Face gives them."""

from abc import ABC, abstractmethod
from zlib import crc32

import torch


class WeightSource(ABC):
    """Tensors by their names in a Hugging Face checkpoint, as ``model.layers.0.mlp.up_proj.weight``."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is such a tensor."""

    @abstractmethod
    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """A tensor, which must have this shape; in whatever float type and place the source has it.

        Raises ``FileError`` where it is missing, has another shape or cannot be read.
        """


class RandomWeights(WeightSource):
    """Weights of any model from a seed: normal with a standard deviation of 0.02, norms one, biases small.

    A tensor depends on the seed, its name and the kind of device alone, not on what was asked for before it.
    """

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.seed, self.device, self.dtype = seed, device, dtype

    def has(self, name: str) -> bool:
        """Whatever is asked for."""
        return True

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Drawn on the device."""
        if name.endswith("norm.weight"):
            return torch.ones(shape, dtype=self.dtype, device=self.device)
        # 32 bits, as a generator on a CPU takes no more of a seed.
        generator = torch.Generator(self.device).manual_seed(crc32(f"{self.seed} {name}".encode()))
        weights = torch.empty(shape, dtype=self.dtype, device=self.device)
        return weights.normal_(0.0, 0.02, generator=generator)
