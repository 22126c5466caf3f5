"""Draw the trade-off that `theta` sets: `python docs/pictures/theta.py` in the environment of `make test`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from cfproto_plugin import CounterfactualExplainer, SearchConfig

THETAS = (0, 0.2, 0.5, 1, 2, 5, 20)


def measured(model: object, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Mean distance to the row, changed columns, and distance to the new class, for every theta."""
    labels = model.predict(train)  # type: ignore[attr-defined]
    near = {label: NearestNeighbors(n_neighbors=5).fit(train[labels == label]) for label in np.unique(labels)}
    lines = []
    for theta in THETAS:
        e = CounterfactualExplainer(model, search=SearchConfig.close(theta=theta)).fit(train).explain(test)
        delta = e.counterfactual - test
        cost = 0.1 * np.abs(delta).sum(axis=1) + np.square(delta).sum(axis=1)
        to_class = [
            near[k].kneighbors(x[None])[0].mean() for k, x in zip(e.counterfactual_class, e.counterfactual, strict=True)
        ]
        lines.append((cost.mean(), (delta != 0).sum(axis=1).mean(), np.mean(to_class)))
    return np.array(lines)


def main() -> None:
    """Two models, one panel each for the distance and the number of changes."""
    x, y = load_breast_cancer(return_X_y=True)
    x = StandardScaler().fit_transform(x)
    train, test, y_train, _ = train_test_split(x, y, test_size=100, random_state=0, stratify=y)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    models = {
        "XGBoost": (XGBClassifier(n_estimators=100), "#2a9d6f", (-12, -12)),
        "random forest": (RandomForestClassifier(100, random_state=0), "#d9962a", (6, 5)),
    }
    for name, (model, colour, side) in models.items():
        lines = measured(model.fit(train, y_train), train, test)
        for ax, at in zip(axes, (0, 1), strict=True):
            ax.plot(lines[:, 2], lines[:, at], "o-", color=colour, label=name)
            for theta, line in zip(THETAS, lines, strict=True):
                if theta in (0, 0.5, 1, 5, 20):
                    ax.annotate(f"{theta:g}", (line[2], line[at]), xytext=side, textcoords="offset points", fontsize=8)
    axes[0].set_ylabel("distance to the row: 0.1·L1 + L2")
    axes[1].set_ylabel("changed columns")
    for ax in axes:
        ax.set_xlabel("distance to the five nearest rows of the new class")
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    title = "A larger theta, the number beside a dot, brings answers nearer to the new class and farther from the row"
    figure.suptitle(
        f"{title}\nSearchConfig.close(theta=...), means of 100 held-back rows of Breast Cancer", fontsize=10
    )
    figure.savefig(Path(__file__).resolve().parent / "theta.png", dpi=130)


if __name__ == "__main__":
    main()
