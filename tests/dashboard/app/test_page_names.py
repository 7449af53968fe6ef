"""No page hides a package: the folder of pages comes first on the path of the process that serves them."""

from pathlib import Path

from dashboard.app.page_names import PAGES

ROOT = Path(__file__).resolve().parents[3]


def test_no_page_has_the_name_of_a_package():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {"policies", "fidelity"} <= packages
    assert not packages & PAGES.keys()
    assert PAGES.keys() == {path.stem for path in (ROOT / "dashboard" / "app" / "pages").glob("*.py")}
