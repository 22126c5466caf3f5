"""The fronts as a picture: a column per case, a row per quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAMES = {"breast_cancer": "Breast Cancer", "sonar": "sonar", "spambase": "spambase", "wine": "Wine"}
MODELS = {
    "xgboost": "XGBoost",
    "forest": "random forest",
    "logistic": "logistic regression",
    "mlp": "MLP",
    "svc": "SVC",
}
QUALITIES = {
    "survival": "share of refitted models that agree",
    "typicality": "typicality",
    "outlier": "share of outliers",
    "l0": "changed columns",
}
SHOWN = ("survival", "typicality", "l0")
OURS, FRONT = "#1c7a54", "#0f4d35"
PRESETS = {"default": "o", "close": "v", "few": "P", "typical": "^", "stable": "D"}
PEERS = {
    "NICE none": ("#b8562b", "s"),
    "NICE sparsity": ("#b8562b", "X"),
    "NICE proximity": ("#b8562b", "*"),
    "NICE plausibility": ("#b8562b", "d"),
    "treecf": ("#3b5ba5", "h"),
    "DiCE random": ("#8a3d8f", "p"),
    "alibi L1+L2+proto": ("#555555", "<"),
}


def front_of(points: dict[str, list[float]], more_is_better: bool) -> list[list[float]]:
    """Our points that no other setting of ours beats in distance and quality, by distance."""
    sign = 1 if more_is_better else -1
    kept: list[list[float]] = []
    for distance, quality in sorted((p for name, p in points.items() if name.startswith("ours")), key=lambda p: p[0]):
        if not kept or sign * quality > sign * kept[-1][1]:
            kept.append([distance, quality])
    return kept


def draw(fronts: list[dict[str, Any]], file: Path) -> None:
    """Log distance against each quality."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    cases = list(dict.fromkeys((front["data"], front["model"]) for front in fronts))
    figure, grid = plt.subplots(
        len(SHOWN), len(cases), figsize=(3.1 * len(cases) + 0.6, 9), layout="constrained", squeeze=False, sharex="col"
    )
    for front in fronts:
        if front["quality"] in SHOWN:
            at = SHOWN.index(front["quality"]), cases.index((front["data"], front["model"]))
            _panel(grid[at], front, first=at[1] == 0, top=at[0] == 0, bottom=at[0] == len(SHOWN) - 1)
    title = "One dot is a tool or a setting: farther left is nearer to the row; higher is better in the upper rows, "
    figure.suptitle(
        f"{title}lower in the row of changed columns. “ours” is cfproto-plugin", fontsize=12, x=0.01, ha="left"
    )
    figure.legend(handles=_legend(plt), loc="outside lower center", ncols=8, frameon=False, fontsize=10)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def _panel(axes: Any, front: dict[str, Any], *, first: bool, top: bool, bottom: bool) -> None:
    points = front["points"]
    line = front_of(points, front["quality"] != "l0")
    line.append([max(point[0] for point in points.values()), line[-1][1]])  # no setting beyond is better
    axes.step(*zip(*line, strict=True), where="post", color=FRONT, lw=1.4, zorder=2)
    mine = [point for name, point in points.items() if name.startswith("ours")]
    axes.scatter(*zip(*mine, strict=True), color=OURS, s=9, alpha=0.5, zorder=1)
    for name, marker in PRESETS.items():
        axes.scatter(*points[f"ours, {name}"], color=OURS, marker=marker, s=55, edgecolor="white", lw=0.6, zorder=3)
    for name, (colour, marker) in PEERS.items():
        if name in points:
            axes.scatter(*points[name], color=colour, marker=marker, s=65, edgecolor="white", lw=0.6, zorder=4)
    axes.set_xscale("log")
    ticks = [tick for tick in (0.01, 0.1, 1, 3, 10, 30, 100) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if front["quality"] == "l0":
        axes.set_yscale("log")
        axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    if front["quality"] != "l0":
        axes.set_ylim(0, 1.03)
    if top:
        axes.set_title(f"{NAMES[front['data']]}, {MODELS[front['model']]}", fontsize=11)
    if first:
        axes.set_ylabel(QUALITIES[front["quality"]], fontsize=10)
    if bottom:
        axes.set_xlabel("distance to the row (0.1·L1 + L2)", fontsize=9)


def _legend(plt: Any) -> list[Any]:
    own = [plt.Line2D([], [], color=FRONT, label="our front")]
    own += [plt.Line2D([], [], ls="", marker=m, color=OURS, label=f"ours, {name}") for name, m in PRESETS.items()]
    dots = [plt.Line2D([], [], ls="", marker=".", color=OURS, alpha=0.5, label="ours, other settings")]
    others = [plt.Line2D([], [], ls="", marker=m, color=colour, label=name) for name, (colour, m) in PEERS.items()]
    return [*own, *dots, *others]
