"""Several answers of one row side by side: a table whose cells are darker the more they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.notes import alike, weakness
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.plots.unanswered import plot_unanswered
from cfproto_plugin.report.purposes import MARK, OTHER, only_for
from cfproto_plugin.report.ranking import CATEGORY, ranked, scales_of, size_of
from cfproto_plugin.report.words import counted, percent, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation

_COLUMNS, _ANSWERS = 24, 7
_ROW, _FRAME, _ANSWER, _NAMES = 0.36, 2.2, 1.75, 3.0  # inches
_LONG, _VALUE = 15, 23  # characters
_FULL = 2.0  # standard deviations of the darkest cell
_SIGNS = {"▲": "a number rises", "▼": "a number falls", "≠": "another category, or a value in place of a missing one"}
_DARKEST = 0.38  # of black: text on it can still be read


def plot_comparison(explanation: Explanation, figure: Any = None) -> Any:
    """The columns that any answer changes, by how many change them; then the value of the row and of every answer."""
    lines = list(explanation[:_ANSWERS])
    changes = [{str(change.feature): change for change in ranked(line)} for line in lines]
    scales = scales_of(explanation)
    names = _ordered(changes, explanation.column_names or (), scales)
    if not names:
        return plot_unanswered(explanation[0], _title(explanation, 0), str(explanation.message[0]), figure)
    shown = names[:_COLUMNS]
    figure = c.canvas(figure, _NAMES + _ANSWER * (len(lines) + 1), _FRAME + _ROW * (len(shown) + 1))
    axes = figure.subplots()
    c.tidy(axes)
    c.name_rows(axes, shown)
    for y, name in enumerate(shown):
        before = next(each[name].before for each in changes if name in each)
        _write(axes, 0, y, value_text(before))
        for x, each in enumerate(changes, start=1):
            _cell(axes, x, y, each.get(name), scales)
    weaker = [*sorted({text for line in lines if (text := weakness(line))}), *filter(None, [alike(explanation)])]
    heads = ["as it is", *(_head(number, line) for number, line in enumerate(lines, start=1))]
    axes.set_xticks(range(len(heads)), heads, fontsize=c.SMALL)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.5, len(heads) - 0.5)
    hidden = len(names) - len(shown), len(explanation) - len(lines)
    c.entitle(figure, _title(explanation, len(names)), _caption(hidden, _marks(shown, changes, scales), weaker))
    return c.finish(figure)


def _ordered(changes: list[dict[str, Change]], columns: Sequence[str], scales: dict[str, float] | None) -> list[str]:
    """Columns that most answers change first; of equals those that change by more, then the first in the table."""
    found = {name: [each[name] for each in changes if name in each] for name in map(str, columns)}

    def place(name: str) -> tuple[int, float]:
        sizes = [abs(size_of(change, scales)) or CATEGORY for change in found[name]]
        return -len(sizes), -max(sizes)

    return sorted((name for name, each in found.items() if each), key=place)


def _cell(axes: Any, x: int, y: int, change: Change | None, scales: dict[str, float] | None) -> None:
    from matplotlib.patches import Rectangle

    if change is None:
        axes.text(x, y, "·", ha="center", va="center", fontsize=c.TEXT, color=c.DIM)
        return
    size = size_of(change, scales)
    part = min(abs(size) / _FULL, 1.0) if size else 0.5
    shade = str(1 - _DARKEST * max(part, 0.15))
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=shade, edgecolor=c.INK, lw=0.6))
    sign = _sign(size)
    _write(axes, x, y, value_text(change.after) + MARK * bool(only_for(change)), f"{sign} ")


def _write(axes: Any, x: int, y: int, text: str, sign: str = "") -> None:
    """A value in the middle of its cell; a long one in small letters, so that numbers keep their digits."""
    size = c.TEXT if len(text) <= _LONG else c.SMALL - 1
    axes.text(x, y, sign + c.shortened(text, _VALUE), ha="center", va="center", fontsize=size)


def _head(number: int, line: Explanation) -> str:
    if not line.found[0]:
        return f"answer {number}\nnone found"
    label = c.shortened(line.class_name(line.counterfactual_class[0]), 16)
    proba = percent(float(line.new_class_proba[1][0]))
    changes = counted(int(line.n_changes[0]), "change")
    weaker = ", weaker" * bool(weakness(line))
    return f"answer {number}{weaker}\n{label}, {proba}\n{changes}\ndistance {line.distance[0]:.3g}"


def _title(explanation: Explanation, columns: int) -> str:
    found = int(explanation.found.sum())
    row, old = explanation.row[0], c.shortened(explanation.class_name(explanation.original_class[0]))
    if not found:
        return f"Row {row}: no counterfactual was found; the model says “{old}”"
    named = map(explanation.class_name, explanation.counterfactual_class[explanation.found])
    labels = sorted({c.shortened(name) for name in named})
    ways = f"{counted(found, 'way')} to “{'” or “'.join(labels)}” instead of “{old}”"
    return f"Row {row}: {ways}; between them they change {counted(columns, 'column')}"


def _marks(names: list[str], changes: list[dict[str, Change]], scales: dict[str, float] | None) -> set[str]:
    """The marks that occur in the cells."""
    found = set()
    for name in names:
        for change in (each.get(name) for each in changes):
            found.add("·" if change is None else _sign(size_of(change, scales)))
            found |= {"*"} if change is not None and only_for(change) else set()
    return found


def _sign(size: float) -> str:
    return "≠" if not size else "▲" if size > 0 else "▼"


def _caption(hidden: tuple[int, int], marks: set[str], weaker: Sequence[str]) -> str:
    """What the cells and the marks that occur mean."""
    signs = ", ".join(f"{sign} {text}" for sign, text in _SIGNS.items() if sign in marks)
    how = f"Framed cells are the values that an answer changes: {signs}; the darker, the larger the change"
    how += " in standard deviations." if marks & {"▲", "▼"} else "."
    how += " A dot: the value stays." if "·" in marks else ""
    how += f" {OTHER}" if "*" in marks else ""
    how = " ".join([how, *weaker])
    names = [counted(n, noun) for n, noun in zip(hidden, ("column", "further answer"), strict=True) if n]
    return f"{how} Not shown: {' and '.join(names)}." if names else how
