"""What kernels refuse: each is one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches

import torch


class UnsupportedFormError(ValueError):
    """A form of an operation (a data type, a head dimension, a block size...) that no kernel exists for."""

    def __init__(self, operation: str, parameter: str, value: object, supported: Iterable[object]) -> None:
        forms = [str(form) for form in supported]
        nearest = get_close_matches(value, forms, n=1) if isinstance(value, str) else []
        hint = f" (did you mean {nearest[0]}?)" if nearest else ""
        super().__init__(f"{operation} has no form with {parameter} {value}; it has {', '.join(forms)}{hint}")


class UnknownOperationError(AttributeError):
    """The name of an operation that does not exist."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        nearest = get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]}" if nearest else f"there are {', '.join(names)}"
        super().__init__(f"no kernel is called {name!r}; {hint}")


def require_form(operation: str, parameter: str, value: object, supported: Iterable[object]) -> None:
    """Raise ``UnsupportedFormError`` unless ``value`` is among the supported ones."""
    forms = list(supported)
    if value not in forms:
        raise UnsupportedFormError(operation, parameter, value, forms)


def require_rows(operation: str, name: str, tensor: torch.Tensor) -> None:
    """Raise ``UnsupportedFormError`` unless the last dimension of ``tensor`` lies in one piece."""
    if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
        raise UnsupportedFormError(operation, f"strides of {name}", tensor.stride(), ["rows that lie in one piece"])
