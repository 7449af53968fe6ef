"""How the cells of a fidelity table are shown."""

from fidelity.table import Cell, Share


def shown(cell: Cell) -> str:
    """A cell in few characters: a share in percent, a number in four digits, a dash for what is not known."""
    match cell:
        case None:
            return "-"
        case Share(value, signed):
            return f"{value:+.1%}" if signed else f"{value:.1%}"
        case float():
            return f"{cell:.4g}"
        case _:
            return str(cell)
