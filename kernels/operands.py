"""What the operands of a GEMM must be."""

import torch


def require_operands(operation: str, a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Raise ``ValueError`` unless ``a`` [m, k], ``weight`` [n, k] and ``bias`` [n] can be multiplied as they lie."""
    if a.ndim != 2:
        raise ValueError(f"{operation} got a of shape {list(a.shape)}; expected [m, k]")
    if weight.ndim != 2 or weight.shape[1] != a.shape[1]:
        raise ValueError(f"{operation} got a weight of shape {list(weight.shape)}; expected [n, {a.shape[1]}]")
    if weight.dtype != a.dtype:
        raise ValueError(f"{operation} got a weight of {weight.dtype}; expected {a.dtype}, the type of a")
    require_shape(operation, "bias", bias, (weight.shape[0],))
    for name, tensor in (("a", a), ("weight", weight), ("bias", bias)):
        if tensor is not None and tensor.data_ptr() % 16:
            raise ValueError(
                f"{operation} got {name} at address {tensor.data_ptr():#x}; expected a multiple of 16 bytes"
            )


def require_shape(operation: str, name: str, tensor: torch.Tensor | None, *shapes: tuple[int, ...]) -> None:
    """Raise ``ValueError`` unless ``tensor`` is None or has one of the shapes."""
    if tensor is not None and tuple(tensor.shape) not in shapes:
        expected = " or ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{operation} got {name} of shape {list(tensor.shape)}; expected {expected}")
