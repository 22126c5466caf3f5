"""Draw the pictures of the README: `python docs/pictures/make.py` in the environment of `make test`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

from cfproto_plugin import CounterfactualExplainer

HERE = Path(__file__).resolve().parent
BEFORE, AFTER = "#8c8c8c", "#2a9d6f"


def table(axes: Any) -> None:
    """The largest changes, up to nine, of one tumour, in standard deviations of the training data."""
    data, labels = load_breast_cancer(as_frame=True, return_X_y=True)
    train, test, y_train, _ = train_test_split(data, labels, test_size=100, stratify=labels, random_state=0)
    model = XGBClassifier(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=0).fit(train, y_train)
    e = CounterfactualExplainer(model).fit(train).explain(test[:1])
    before, after = ((part.iloc[0] - train.mean()) / train.std() for part in (e.original, e.counterfactual))
    names = (after - before).abs().nlargest(min(9, int(e.n_changes[0]))).index[::-1]
    for at, name in enumerate(names):
        axes.plot([before[name], after[name]], [at, at], color=AFTER, lw=2, zorder=1)
        axes.scatter(before[name], at, color=BEFORE, s=44, zorder=2, label="the tumour as it is" if not at else None)
        axes.scatter(after[name], at, color=AFTER, s=44, zorder=2, label="its counterfactual" if not at else None)
        values = f"{e.original[name].iloc[0]:g} → {e.counterfactual[name].iloc[0]:g}"
        end = max(before[name], after[name])
        axes.annotate(values, (end, at), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.margins(x=0.25)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2, frameon=False)
    p, changes = e.counterfactual_proba[0, 0], int(e.n_changes[0])
    which = f"the {len(names)} largest of {changes} changes" if changes > len(names) else f"{changes} changes"
    title = f"A benign tumour, and what would make XGBoost call it malignant ({100 * p:.0f} %): {which}"
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("standard deviations from the training mean; beside the dots: the value before → after", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def images(grid: Any) -> None:
    """Digits and what the network would have called something else."""
    x, y = load_digits(return_X_y=True)
    x = x / 16
    train, test, y_train, _ = train_test_split(x, y, test_size=200, random_state=0)
    model = MLPClassifier((64,), max_iter=1000, random_state=0).fit(train, y_train)
    explainer = CounterfactualExplainer(model, encoder=PCA(16, random_state=0).fit(train)).fit(train)
    e = explainer.explain(test[[3, 8, 12, 21]])
    for axes, line in zip(grid, e, strict=True):
        pair = np.hstack([line.original.reshape(8, 8), np.full((8, 1), np.nan), line.counterfactual.reshape(8, 8)])
        axes.imshow(pair, cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"read as {line.original_class[0]} → as {line.counterfactual_class[0]}", fontsize=9)
        axes.axis("off")


def main() -> None:
    """One picture: a table on the left, images on the right."""
    figure = plt.figure(figsize=(11.5, 4.1), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.9, 1])
    table(left.subplots())
    images(right.subplots(2, 2).ravel())
    right.suptitle("Digits, each beside the nearest image found\nthat a network reads as another digit", fontsize=10)
    figure.savefig(HERE / "counterfactuals.png", dpi=130)


if __name__ == "__main__":
    main()
