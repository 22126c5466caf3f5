"""The plot of average ranks with critical differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measure import NEAREST

TITLES = {
    "en": "distance 0.1·L1 + L2",
    "l1": "distance L1",
    "l0": "columns changed",
    "survival": "refitted models that agree",
    "nn5": "5NN: near to the new class",
    "im1": "IM1",
    "cpu": "time of a row alone",
    "fifty": "time of a row in one call with fifty",
}


def draw(group: dict[str, Any], file: Path) -> None:
    """A panel per measure: tools by rank; those in the grey band do not differ from the best at 5 %."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [name for name in TITLES if name in group["measures"]]
    figure, grid = plt.subplots(4, 2, figsize=(10.5, 13))
    for axes, name in zip(grid.flat, shown, strict=False):
        panel(axes, group["measures"][name], TITLES[name])
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    first = group["measures"][shown[0]]
    figure.suptitle(
        f"Average ranks over {first['cases']} cases (a table and a model), 1 is best. “ours” is cfproto-plugin.\n"
        f"Grey band: within the critical difference of the best (Nemenyi, 5 %, {first['tables']} tables)",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def panel(axes: Any, found: dict[str, Any], title: str) -> None:
    """One measure, the best tool at the top."""
    order = sorted(zip(found["ranks"], found["tools"], strict=True))
    best = order[0][0]
    axes.axvspan(best, best + found["difference"], color="0.9", zorder=0)
    for at, (rank, tool) in enumerate(order):
        ours = tool.startswith("ours")
        colour = "tab:blue" if ours else "tab:grey" if tool == NEAREST else "tab:orange"
        axes.plot([1, rank], [at, at], color=colour, linewidth=0.8, alpha=0.5)
        axes.plot(rank, at, "o", color=colour, markersize=6)
        axes.annotate(f"{rank:.1f}", (rank, at), (6, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(range(len(order)), [tool for _, tool in order], fontsize=8)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith("ours") else "normal")
    axes.invert_yaxis()
    axes.set_xlim(0.7, len(order) + 0.8)
    axes.set_title(title, fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
