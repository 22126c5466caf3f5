"""The presets, on the same rows.

Sixty held-back rows of Breast Cancer in their own units, 100 trees. `distance` is the median of 0.1·L1 + L2 in standard
deviations, `changed` the mean number of columns that differ, `typicality` the median of `e.typicality`. `stability` is
the mean share of 200 copies to which the model gives the new class, every number moved by normal noise of 0.1 standard
deviations: the same noise for every preset, drawn apart from the search's own. `outliers` is the share of answers that
the local outlier factor (20 neighbours, among the standardised training rows to which the model gives the new class)
calls outliers. `refits agree` is the mean share of ten models, fitted to bootstraps of the training rows with other
seeds, that give an answer the class it claims. `ms` is the processor time per row of one call with all sixty, best of
three. `the rows themselves` are the held-back rows before any change, with their own class: what real rows get.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, SearchConfig

PRESETS = {
    "default": SearchConfig(),
    "close": SearchConfig.close(),
    "few": SearchConfig.few(),
    "typical": SearchConfig.typical(),
    "stable": SearchConfig.stable(),
}
SHORTER = {  # ways to a shorter list, for the table
    "default, few_changes=3": SearchConfig(few_changes=3),
    "default, max_changes=5": SearchConfig(max_changes=5),
    "stable, max_changes=5": SearchConfig.stable(max_changes=5),
}
ROWS, REFITS, COPIES, NOISE, SEED = 60, 10, 200, 0.1, 1
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
DOCS = Path(__file__).resolve().parents[1] / "docs"
COLOURS = {"XGBClassifier": "#1c7a54", "RandomForestClassifier": "#b8562b"}
NAMES = {"XGBClassifier": "XGBoost", "RandomForestClassifier": "random forest"}
MARKERS = {"default": "o", "close": "v", "few": "P", "typical": "^", "stable": "D"}


def measure() -> list[dict[str, Any]]:
    """One line per model and preset."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from xgboost import XGBClassifier

    x, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, _ = train_test_split(x, y, test_size=1 / 3, random_state=SEED, stratify=y)
    lines = []
    for kind in (XGBClassifier, RandomForestClassifier):
        case = Case(kind, train, y_train, test[:ROWS])
        lines.append(case.of_the_rows())
        lines += [case.of_preset(name) for name in PRESETS | SHORTER]
    return lines


class Case:
    """A model, ten others like it, and the rows to explain."""

    def __init__(self, kind: Any, train: np.ndarray, y: np.ndarray, rows: np.ndarray) -> None:
        rng = np.random.default_rng(SEED)
        samples = [rng.integers(len(train), size=len(train)) for _ in range(REFITS)]
        self.train, self.rows = train, rows
        self.model = kind(n_estimators=100, random_state=SEED).fit(train, y)
        self.refits = [kind(n_estimators=100, random_state=100 + i).fit(train[s], y[s]) for i, s in enumerate(samples)]
        self.steps = NOISE * train.std(axis=0) * rng.standard_normal((COPIES, train.shape[1]))

    def of_the_rows(self) -> dict[str, Any]:
        """What real rows get."""
        label = self.model.predict(self.rows)
        nothing = dict.fromkeys(("distance", "changed", "typicality"), "")
        return {
            "model": type(self.model).__name__,
            "preset": "the rows themselves",
            "found": f"{len(self.rows)} of {len(self.rows)}",
            **nothing,
            **self.judged(self.rows, label),
            "ms": "",
        }

    def of_preset(self, name: str) -> dict[str, Any]:
        """What the answers of a preset are like."""
        explainer = CounterfactualExplainer(self.model, search=(PRESETS | SHORTER)[name]).fit(self.train)
        times = []
        for _ in range(3):
            start = time.process_time()
            e = explainer.explain(self.rows, progress=False)
            times.append(time.process_time() - start)
        e = e[e.found]
        label = np.array(e.counterfactual_class.tolist())
        return {
            "model": type(self.model).__name__,
            "preset": name,
            "found": f"{len(e)} of {len(self.rows)}",
            "distance": float(np.median(e.distance)),
            "changed": float(e.n_changes.mean()),
            "typicality": float(np.median(e.typicality)),
            **self.judged(e.counterfactual, label),
            "ms": 1000 * min(times) / len(self.rows),
        }

    def judged(self, rows: np.ndarray, label: np.ndarray) -> dict[str, float]:
        """Stability, outliers and agreement of rows with the classes that they claim."""
        copies = (rows[:, None] + self.steps).reshape(-1, rows.shape[1])
        same = self.model.predict(copies).reshape(len(rows), COPIES) == label[:, None]
        return {
            "stability": float(same.mean()),
            "outliers": float(self.outliers(rows, label).mean()),
            "refits agree": float(np.mean([model.predict(rows) == label for model in self.refits])),
        }

    def outliers(self, rows: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Which rows the local outlier factor calls outliers of the classes that they claim."""
        from sklearn.neighbors import LocalOutlierFactor
        from sklearn.preprocessing import StandardScaler

        scaler, given = StandardScaler().fit(self.train), self.model.predict(self.train)
        found = np.zeros(len(rows), dtype=bool)
        for each in np.unique(label):
            known = LocalOutlierFactor(20, novelty=True).fit(scaler.transform(self.train[given == each]))
            found[label == each] = known.predict(scaler.transform(rows[label == each])) < 0
        return found


def write_page(result: dict[str, Any], table: str, footer: str) -> None:
    """Put the table and the picture into the page about settings."""
    page = DOCS / "settings.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    picture = "![Agreement of refitted models and typicality against the distance, by preset](pictures/presets.png)"
    text = f"{table}\n\n{picture}\n\n{footer}\n"
    page.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")
    draw([line for line in result["lines"] if line["preset"] in PRESETS], DOCS / "pictures" / "presets.png")


def draw(lines: list[dict[str, Any]], file: Path) -> None:
    """Agreement of refits and typicality against the distance."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    titles = {"refits agree": "share of refitted models that agree", "typicality": "typicality (median)"}
    for axes, (field, title) in zip(grid, titles.items(), strict=True):
        for line in lines:
            style = {"color": COLOURS[line["model"]], "marker": MARKERS[line["preset"]], "s": 60, "alpha": 0.85}
            axes.scatter(line["distance"], line[field], **style)
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        axes.minorticks_off()
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("distance to the row (median of 0.1·L1 + L2)", fontsize=9)
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    marks = [plt.Line2D([], [], ls="", color="#444444", marker=m, label=name) for name, m in MARKERS.items()]
    marks += [plt.Line2D([], [], ls="", color=c, marker="s", label=NAMES[model]) for model, c in COLOURS.items()]
    title = "The presets on Breast Cancer: farther left is nearer to the row, higher is better"
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.legend(handles=marks, loc="outside right center", frameon=False, fontsize=9)
    figure.savefig(file, dpi=120)
    plt.close(figure)
