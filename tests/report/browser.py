"""A headless Chromium for tests: one that is installed, or Playwright's own. As a program: whether there is one."""

from __future__ import annotations

import contextlib
import shutil
import sys
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
        found = executable(tools)
        if found is None:
            yield None
            return
        browser = tools.chromium.launch(executable_path=found)
        try:
            yield browser
        finally:
            browser.close()


def executable(tools: Any) -> str | None:
    """The path of a Chromium, None if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), tools.chromium.executable_path)
    return found if Path(found).exists() else None


_RENDER = """async ([text, state]) => {
  const module = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const listeners = [];
  const model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    on: (event, listener) => listeners.push(listener),
    off: () => {},
    save_changes: async () => {
      state.result = await window.ask(state.asked);
      listeners.forEach((listener) => listener());
    },
  };
  module.default.render({ model, el: document.getElementById("widget") });
}"""


def render_widget(page: Any, widget: Any) -> None:
    """Show an anywidget in a page; what its script asks is answered by the widget itself, as a notebook does it."""

    def ask(asked: Any) -> Any:
        widget.asked = asked
        return widget.result

    page.expose_function("ask", ask)
    page.set_content('<!doctype html><meta charset="utf-8"><div id="widget"></div>')
    page.add_style_tag(content=widget._css)
    names = ("controls", "about", "asked", "result")
    page.evaluate(_RENDER, [widget._esm, {name: getattr(widget, name) for name in names}])


if __name__ == "__main__":  # exits with 1 where there is none
    with chromium() as one:
        sys.exit(one is None)
