"""Draw the pictures of docs/adult.md: `python docs/pictures/adult.py` in the environment of `make test`.

CFPROTO_DATA must name the folder that holds Adult.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.datasets import load_adult
from cfproto_plugin.distances import ABDM, bin_context
from cfproto_plugin.tables.embedding import embed

HERE = Path(__file__).resolve().parent
BEFORE, AFTER, TINT, LINE = "#8c8c8c", "#1c7a54", "#d9f0e4", "#d9d9d9"
PERSON = 27  # of the test rows
SCHOOL = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip


def network(train: Any, labels: Any) -> Any:
    """A small network behind one-hot and standardised columns, as a function of the raw rows."""
    numbers, strings = train.select_dtypes("number").columns, train.select_dtypes(exclude="number").columns
    encoder = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), strings), sparse_threshold=0
    ).fit(train)
    torch.manual_seed(0)
    x = torch.tensor(encoder.transform(train), dtype=torch.float32)
    y = torch.tensor(labels.to_numpy())
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 40),
        torch.nn.ReLU(),
        torch.nn.Linear(40, 40),
        torch.nn.ReLU(),
        torch.nn.Linear(40, 2),
    )
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(8):
        for batch in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            optimizer.step()

    @torch.no_grad()
    def model(rows: Any) -> Any:
        return net(torch.tensor(encoder.transform(rows), dtype=torch.float32)).softmax(dim=1).numpy()

    return model


def education(train: Any) -> tuple[Any, Any, Any]:
    """The categories of education, their numbers by ABDM, and how often each occurs."""
    strings = train.select_dtypes(exclude="number")
    names = [np.unique(strings[name]) for name in strings]
    codes = np.stack(
        [np.searchsorted(known, strings[name]) for known, name in zip(names, strings, strict=True)], axis=1
    )
    context = bin_context(train.select_dtypes("number").to_numpy())
    at = list(strings).index("education")
    distances = ABDM()(codes, [len(known) for known in names], context, np.zeros(len(codes)))[at]
    counts = np.bincount(codes[:, at])
    values = embed([distances], scaling="standard", counts=[counts])[0]
    sign = np.sign(values[names[at] == "Doctorate"])  # either end may be the lower one
    return names[at], sign * values, counts / counts.sum()


def ladder(axes: Any, names: Any, values: Any, title: str, label: str) -> None:
    """Categories in the order of their numbers, coloured by years at school."""
    order = np.argsort(values)
    years = [SCHOOL.index(name) for name in names[order]]
    axes.hlines(range(len(order)), values.min(), values[order], color=LINE, lw=1, zorder=1)
    axes.scatter(values[order], range(len(order)), c=years, cmap="viridis", s=64, zorder=2)
    axes.set_yticks(range(len(order)), names[order], fontsize=9)
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(label, fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def draw_embedding(train: Any) -> None:
    """The paper's figure 3."""
    names, values, shares = education(train)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    ladder(left, names, values, "ABDM: alike if the other columns are alike", "number of the category in the search")
    ladder(right, names, 100 * shares, "frequency: how often it occurs", "per cent of the training rows")
    colours = mpl.cm.ScalarMappable(cmap="viridis")
    bar = figure.colorbar(colours, ax=right, ticks=[0, 1], pad=0.03, aspect=30)
    bar.ax.set_yticklabels(["fewest", "most"], fontsize=9)
    bar.set_label("years at school", fontsize=9, labelpad=-18)
    bar.outline.set_visible(False)
    title = (
        "Numbers for the categories of “education”: by ABDM they follow the years at school, by frequency they do not"
    )
    figure.suptitle(title, x=0.005, ha="left", fontsize=11, weight="bold")
    figure.savefig(HERE / "adult_education.png", dpi=130)


def draw_counterfactual(e: Explanation) -> None:
    """The paper's figure 1(b): one person, as it is and as it would have to be."""
    before, after = e.original.iloc[0], e.counterfactual.iloc[0]
    figure, axes = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    count = int(e.n_changes[0])
    title = f"Had these {count} values been different, the network would have\nput this person above 50K a year"
    figure.suptitle(title, x=0.02, ha="left", fontsize=11, weight="bold")
    axes.set(xlim=(0, 10), ylim=(len(before) + 1.9, -0.9))
    axes.axis("off")
    for at, text, colour in ((0.2, "", "black"), (3.4, "original", BEFORE), (6.8, "counterfactual", AFTER)):
        axes.text(at, -0.2, text, color=colour, fontsize=11, weight="bold", va="center")
    for i, name in enumerate(before.index, start=1):
        changed = before[name] != after[name]
        if changed:
            axes.add_patch(plt.Rectangle((6.6, i - 0.46), 3.4, 0.92, color=TINT, lw=0))
        axes.axhline(i - 0.5, color=LINE, lw=0.8)
        axes.text(0.2, i, name, fontsize=10, va="center")
        axes.text(3.4, i, before[name], fontsize=10, va="center")
        strong = {"color": AFTER, "weight": "bold"} if changed else {"color": BEFORE}
        axes.text(6.8, i, after[name], fontsize=10, va="center", **strong)
    foot = len(before) + 1
    axes.axhline(foot - 0.5, color="black", lw=1)
    axes.text(0.2, foot + 0.15, "probability of > 50K", fontsize=10, va="center", weight="bold")
    for at, proba in ((3.4, e.original_proba[0, 1]), (6.8, e.counterfactual_proba[0, 1])):
        axes.text(at, foot + 0.15, f"{proba:.3f}", fontsize=10, va="center", weight="bold")
    figure.savefig(HERE / "adult_counterfactual.png", dpi=130)


def main() -> None:
    """Both pictures of docs/adult.md."""
    (train, income), (test, _) = load_adult(split="train"), load_adult(split="test")
    train, test = (part.drop(columns=["fnlwgt", "education-num"]) for part in (train, test))
    draw_embedding(train)
    given = ("sex", "race", "native-country", "marital-status", "relationship", "capital-gain", "capital-loss")
    model = network(train, (income == ">50K").astype(int))
    explainer = CounterfactualExplainer(model, features=Features(immutable=given, increasing=("age",))).fit(train)
    draw_counterfactual(explainer.explain(test.iloc[[PERSON]]))


if __name__ == "__main__":
    main()
