"""Pictures of every page of the dashboard, in both themes: ``python -m tools.dashboard_screenshots FOLDER``.

Needs the extra ``dev`` and Debian's ``chromium``. The picture of the README is that of
``docs/images --themes light --pages what_if --size tall``.
"""

import argparse
from pathlib import Path

from dashboard.app.page_names import PAGES
from tools.dashboard_browser import browser, served, settle

THEMES = ("light", "dark")
SIZES = {"1280": (1280, 900), "1920": (1920, 1080), "phone": (390, 844), "tall": (1280, 2250)}
_HEIGHT = "document.querySelector('[data-testid=\"stMain\"]').scrollHeight"


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", nargs="*", choices=PAGES, default=PAGES)
    parser.add_argument("--themes", nargs="*", choices=THEMES, default=THEMES)
    parser.add_argument("--size", choices=SIZES, default="1280")
    parser.add_argument("--whole", action="store_true", help="the whole page, not what is in sight")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    width, height = SIZES[asked.size]
    with served() as address, browser() as opened:
        for theme in asked.themes:
            context = opened.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
            for name in asked.pages:
                page = context.new_page()
                page.goto(f"{address}/{'' if name == 'what_if' else name}")
                settle(page)
                if asked.whole:  # the page scrolls within itself
                    page.set_viewport_size({"width": width, "height": int(page.evaluate(_HEIGHT)) + 20})
                    settle(page)
                page.screenshot(path=asked.folder / f"{name}-{theme}.png")
                page.close()
            context.close()


if __name__ == "__main__":
    main()
