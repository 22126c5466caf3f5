"""A headless Chromium for tests: one that is installed, or Playwright's own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "no Chromium: none of chromium, chromium-browser and google-chrome is on the PATH, and `make browser` was not run"
)


@contextlib.contextmanager
def chromium() -> Iterator[Any | None]:
    """A running browser; None where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        found = next(filter(None, map(shutil.which, NAMES)), tools.chromium.executable_path)
        if not Path(found).exists():
            yield None
            return
        browser = tools.chromium.launch(executable_path=found)
        try:
            yield browser
        finally:
            browser.close()
