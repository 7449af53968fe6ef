"""``servetwin doctor``: versions, what optional parts are usable and why not, and clashes of package names."""

import platform
import re
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path

import typer

OWN_PACKAGES = ("servetwin", "dashboard", "simcore", "policies", "hardware_profiles")
OPTIONAL_PARTS = {
    "kernels": ("torch", "triton"),
    "dashboard": ("streamlit",),
}
"""The modules that an extra's parts need."""


def doctor() -> None:
    """Report versions, optional parts, and packages of others that hide servetwin's (then the exit code is 1)."""
    typer.echo(f"servetwin {version('servetwin')}, Python {platform.python_version()}, {platform.platform()}")
    for name in _base_requirements():
        typer.echo(f"  {name} {version(name)}")
    for extra, modules in OPTIONAL_PARTS.items():
        missing = [module for module in modules if find_spec(module) is None]
        why = f"not usable: no {', '.join(missing)}; pip install 'servetwin[{extra}]'" if missing else "usable"
        typer.echo(f"extra {extra}: {why}")
    clashes = find_clashes()
    for clash in clashes:
        typer.echo(f"clash: {clash}")
    if clashes:
        typer.echo("Install servetwin into an environment of its own.")
        raise typer.Exit(1)
    typer.echo("no clash of package names")


def find_clashes() -> list[str]:
    """One sentence per top-level package of servetwin that another distribution provides too, or hides."""
    clashes = []
    home = Path(__file__).resolve().parent.parent
    providers = packages_distributions()
    for package in OWN_PACKAGES:
        others = sorted({name for name in providers.get(package, ()) if name.lower() != "servetwin"})
        if others:
            clashes.append(f"the package {package!r} is also installed by {', '.join(others)}")
        spec = find_spec(package)
        found = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
        if found != home / package:
            clashes.append(f"import {package} finds {found}, not servetwin's {home / package}")
    return clashes


def _base_requirements() -> list[str]:
    try:
        stated = requires("servetwin") or []
    except PackageNotFoundError:
        return []
    return [re.split(r"[^\w.-]", line)[0] for line in stated if "extra ==" not in line]
