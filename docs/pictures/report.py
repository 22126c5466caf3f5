"""Take the pictures of docs/reports.md in Chromium: `python docs/pictures/report.py` in the environment of `make test`.

They show what the code of the page makes.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "report"))

from browser import MISSING, chromium, render_widget  # noqa: E402 found through the line above

IMAGES, LINE = TOP / "docs" / "pictures", 4
WIDE, NARROW = {"width": 900, "height": 900}, {"width": 390, "height": 800}


def made_by_the_page() -> dict[str, Any]:
    """The names that the first block of the page defines."""
    text = (TOP / "docs" / "reports.md").read_text(encoding="utf-8")
    (block, *_) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102 the code of the page
    return names


def report(browser: Any, path: Path, row: int) -> None:
    """The top, the cohort, and one card with a change that is off, wide and narrow."""
    page = browser.new_page(viewport=WIDE)
    page.goto(path.as_uri())
    end = page.locator(".guide").bounding_box()
    page.screenshot(
        path=IMAGES / "report-top.png", clip={"x": 0, "y": 0, "width": 900, "height": end["y"] + end["height"]}
    )
    page.locator("#changes").screenshot(path=IMAGES / "report-cohort.png")
    page.fill("#search", f"row {row} (label")
    card = page.locator(f".card[data-row='{row}']")
    card.locator(".switch input").nth(1).uncheck()
    page.evaluate("() => document.activeElement.blur()")
    for name, size in (("report-card", WIDE), ("report-phone", NARROW)):
        page.set_viewport_size(size)
        card.screenshot(path=IMAGES / f"{name}.png")


def main() -> None:
    """All pictures."""
    names = made_by_the_page()
    e = names["e"]
    with chromium() as browser, tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if browser is None:
            raise SystemExit(MISSING)
        report(browser, e.to_html(Path(folder) / "report.html", title="Refused loans"), LINE)
        page = browser.new_page(viewport=WIDE)
        page.set_content(f'<!doctype html><meta charset="utf-8">{e[LINE]._repr_html_()}')
        page.locator(".cfp").screenshot(path=IMAGES / "report-notebook.png")
        page = browser.new_page(viewport=WIDE)
        render_widget(page, e.what_if(LINE, features=["housing"]))
        page.get_by_label("debt, exact value").fill("11000")
        page.keyboard.press("Tab")
        page.locator("output:not([aria-busy])").wait_for()
        page.locator("#widget").screenshot(path=IMAGES / "what-if.png")


if __name__ == "__main__":
    main()
