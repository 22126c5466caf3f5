"""What all pictures share: figures that no window knows of, text that stays text, and marks that need no colour.

matplotlib is imported when a picture is drawn. Figures are made without pyplot: nothing global changes, no display is
needed, and threads do not meet.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable
from functools import partial
from typing import Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, MissingPackageError
from cfproto_plugin.report.texts import without_surrogates

INK, DIM = "#1a1a1a", "#6b6b6b"
BAND, FAINT = "#d4d4d4", "#ececec"
BEFORE, AFTER = "#5f5f5f", "#11694b"
RISE, FALL, OTHER = "#2b6cb0", "#e0a458", "#b9b9b9"
RISING, FALLING, ELSE = "", "////", "...."  # hatches that say the same as the three colours
MINUS = "\N{MINUS SIGN}"
TITLE, TEXT, SMALL = 11.5, 9.5, 8.5  # points
_CHARACTERS, _BOLD = 126.0, 110.0  # of one point on an inch of a wrapped line
_WIDE = 0.0088  # inches of a character for every point
_NAME = 34  # characters of a name


def load_figure() -> Any:
    """matplotlib's Figure, or an error that says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError(
            "pictures need matplotlib, which is not installed: pip install 'cfproto-plugin[plots]'"
        ) from error
    return Figure


def canvas(figure: Any, width: float, height: float) -> Any:
    """A new figure of that size in inches, or the user's own: a Figure or SubFigure."""
    made = load_figure()
    if figure is not None:
        if not hasattr(figure, "subfigures"):
            raise InputError(f"figure is {shown(figure)}; expected a matplotlib Figure or SubFigure, or None")
        return figure
    found = made(figsize=(width, height), layout="constrained", facecolor="white")
    found._repr_png_ = partial(_png, found)  # for notebooks where pyplot was never imported
    return found


def _png(figure: Any) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=100, bbox_inches=None)
    return data.getvalue()


def width_of(figure: Any) -> float:
    """Inches, of a part of a figure too."""
    return float(figure.bbox.width / figure.dpi)


def entitle(figure: Any, title: str, caption: str = "") -> None:
    """A sentence above the picture that says what it means, and one below that says how to read it."""
    width = width_of(figure)
    figure.suptitle(_wrapped(title, width * _BOLD / TITLE), x=0.01, ha="left", fontsize=TITLE, fontweight="bold")
    if caption:
        figure.supxlabel(_wrapped(caption, width * _CHARACTERS / SMALL), x=0.01, ha="left", fontsize=SMALL, color=DIM)


def finish(figure: Any) -> Any:
    """The figure with the user's text as it is: no $mathematics$, no TeX; and dark on white whatever the style says.

    Halves of surrogate pairs, which no font and no file holds, become question marks.
    """
    from matplotlib import rcParams
    from matplotlib.text import Text

    own = {rcParams[name] for name in ("text.color", "axes.labelcolor", "axes.titlecolor")}
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        text.set_usetex(False)
        text.set_text(without_surrogates(text.get_text()))
        if text.get_color() in own:
            text.set_color(INK)
    return figure


def tidy(axes: Any, *, keep: str = "") -> None:
    """Axes on white, with the sides of the frame in `keep`, such as "left bottom"."""
    axes.set_facecolor("white")
    axes.grid(visible=False)
    axes.tick_params(colors=INK, labelsize=TEXT)
    axes.tick_params(axis="x", length=3 if "bottom" in keep else 0)
    axes.tick_params(axis="y", length=3 if "left" in keep else 0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in keep.split())
        spine.set_color(DIM)


def name_rows(axes: Any, names: list[str], size: float = TEXT, rows: int = 0) -> None:
    """A name to the left of every row 0, 1, ... from the top down, with room for as many as `rows`."""
    axes.set_yticks(range(len(names)), [shortened(name) for name in names], fontsize=size)
    axes.set_ylim(max(len(names), rows) - 0.4, -0.6)


def shortened(text: str, most: int = _NAME) -> str:
    """A name that is too long loses its middle: beginning and end tell names apart. Line breaks become spaces."""
    text = " ".join(without_surrogates(text).split()) or "(no name)"
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"


def signed(value: float, digits: str = ".3g") -> str:
    """A number with its sign; the minus is as wide as the plus."""
    return f"{value:+{digits}}".replace("-", MINUS)


def inches(texts: Iterable[str], points: float = TEXT) -> float:
    """The room that the longest of the texts takes."""
    return max((len(text) for text in texts), default=0) * points * _WIDE + 0.1


def text_column(axes: Any, head: str, texts: list[str], *, size: float = TEXT, rows: int = 0, **style: Any) -> None:
    """Axes that hold nothing but a text for every row 0, 1, ... as `name_rows` has them, and a head above them."""
    axes.axis("off")
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(texts), rows) - 0.4, -0.6)
    for y, text in enumerate(texts):
        axes.text(0, y, text, va="center", fontsize=size, **style)
    axes.set_title(head, loc="left", fontsize=SMALL, color=DIM)


def _wrapped(text: str, room: float) -> str:
    """At most so many characters in a line; "58 %" is not broken."""
    return "\n".join(textwrap.wrap(text.replace(" %", "\N{NO-BREAK SPACE}%"), max(int(room), 20)))


def no_picture(figure: Any, title: str, why: str) -> Any:
    """A figure that says why there is nothing to draw."""
    made = canvas(figure, 8.0, 1.2)
    entitle(made, title, why)
    return finish(made)
