"""What kernels refuse: each is one sentence."""

from collections.abc import Iterable
from difflib import get_close_matches


class UnsupportedFormError(ValueError):
    """A form of an operation (a data type, a head dimension, a block size...) that no kernel exists for."""

    def __init__(self, operation: str, parameter: str, value: object, supported: Iterable[object]) -> None:
        forms = ", ".join(str(form) for form in supported)
        super().__init__(f"{operation} has no form with {parameter} {value}; it has {forms}")


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
