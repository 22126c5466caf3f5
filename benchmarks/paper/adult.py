"""The paper's Adult experiment: `CFPROTO_DATA=<folder> python benchmarks/paper/adult.py`.

Education embedded by ABDM and by frequency, and counterfactuals with changed categories of a small network, for two
networks that are trained anew. Results are kept below .cache/paper, so that a run that was stopped goes on where it
was. Writes benchmarks/results/paper/adult*.csv and docs/paper-adult.md with its picture.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import dense
import numpy as np
import torch
from common import Places
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.distances import ABDM, MVDM, bin_context
from cfproto_plugin.metrics import validity
from cfproto_plugin.tables.embedding import embed

RICH = ">50K"
REPEATED = ["fnlwgt", "education-num"]  # a survey weight, and education once more as a number
RULES = Features(
    immutable=("sex", "race", "native-country", "marital-status", "relationship", "capital-gain", "capital-loss"),
    increasing=("age",),
)


class Frequency:
    """d(a, b) = |share of a - share of b|: the embedding the paper compares with."""

    def __call__(self, codes: Any, n_categories: Sequence[int], context: Any, labels: Any) -> list[Any]:  # noqa: ARG002
        """One matrix per column."""
        shares = [
            np.bincount(column, minlength=k) / len(column) for column, k in zip(codes.T, n_categories, strict=True)
        ]
        return [np.abs(share[:, None] - share) for share in shares]


DISTANCES = {"abdm": ABDM, "mvdm": MVDM, "frequency": Frequency}


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: int = 2
    rows: int = 100
    epochs: int = 8


@dataclass(frozen=True)
class Data:
    """Raw rows, whether they earn more than 50,000, and the level of school, 1 to 16, of every education."""

    train: Any
    rich: Any
    test: Any
    levels: dict[str, int]

    @classmethod
    def load(cls) -> Data:
        """The published split."""
        from cfproto_plugin.datasets import load_adult

        (train, income), (test, _) = load_adult(split="train"), load_adult(split="test")
        return cls.of(train, income, test)

    @classmethod
    def of(cls, train: Any, income: Any, test: Any) -> Data:
        """Leave out the columns that repeat others."""
        levels = dict(zip(train["education"], train["education-num"].astype(int), strict=True))
        train, test = (part.drop(columns=REPEATED) for part in (train, test))
        return cls(train, (income == RICH).to_numpy().astype(int), test, levels)

    @cached_property
    def encoder(self) -> Any:
        """One-hot and standardised columns."""
        from sklearn.compose import make_column_transformer
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = self.train.select_dtypes("number").columns
        strings = self.train.select_dtypes(exclude="number").columns
        return make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), strings), sparse_threshold=0
        ).fit(self.train)


def education(data: Data, name: str) -> dict[str, float]:
    """The number of every education under a distance, the doctorate on the higher side."""
    strings = data.train.select_dtypes(exclude="number")
    known = [np.unique(strings[column]) for column in strings]
    codes = np.stack([np.searchsorted(k, strings[c]) for k, c in zip(known, strings, strict=True)], axis=1)
    context = bin_context(data.train.select_dtypes("number").to_numpy())
    at = list(strings).index("education")
    distances = DISTANCES[name]()(codes, [len(k) for k in known], context, data.rich)[at]
    values = embed([distances], scaling="standard", counts=[np.bincount(codes[:, at])])[0]
    found = dict(zip(known[at].tolist(), values.tolist(), strict=True))
    highest = max(data.levels, key=lambda name: data.levels[name])
    sign = np.sign(found[highest] - np.median(values)) or 1.0
    return {level: float(sign * value) for level, value in found.items()}


def shares(data: Data) -> dict[str, float]:
    """How often every education occurs: the frequency embedding itself."""
    counts = data.train["education"].value_counts()
    return {level: float(count / len(data.train)) for level, count in counts.items()}


def network(store: Store, data: Data, seed: int, size: Size) -> Any:
    """A 40-40 network behind one-hot and standardised columns, as a function of the raw rows."""
    encoder = data.encoder
    width = len(encoder.get_feature_names_out())

    def made() -> Arrays:
        torch.manual_seed(seed)
        x = encoder.transform(data.train)
        net = dense.layers((width, 40, 40, 2))
        return dense.weights(dense.train(net, x, data.rich, epochs=size.epochs, rate=0.001, adam=True))

    kept = store.get(f"seed{seed}/network", {"epochs": size.epochs, "rows": len(data.train)}, made)
    net = dense.loaded(dense.layers((width, 40, 40, 2)), kept)

    @torch.no_grad()
    def probabilities(rows: Any) -> Any:
        x = torch.from_numpy(np.asarray(encoder.transform(rows), dtype=np.float32))
        return net(x).softmax(dim=1).numpy()

    return probabilities


def explained(data: Data, model: Any, distance: str, polish: bool, rows: Any) -> Explanation:
    """Counterfactuals of rows that the model does not think rich."""
    explainer = CounterfactualExplainer(
        model,
        features=RULES,
        distance=DISTANCES[distance](),
        search=SearchConfig.close(theta=0.0 if polish else 5.0, polish=polish),
    )
    return explainer.fit(data.train).explain(rows, target=1, progress=False)


def poor(data: Data, model: Any, count: int) -> Any:
    """The first test rows that the model does not think rich."""
    head = data.test.iloc[: 4 * count]
    return head[model(head).argmax(axis=1) == 0].iloc[:count]


def search(data: Data, model: Any, distance: str, polish: bool, count: int) -> Arrays:
    """The counterfactuals of rows that the model does not think rich."""
    return {"explanation": explained(data, model, distance, polish, poor(data, model, count)).to_json()}


def measured(e: Explanation, data: Data) -> Arrays:
    """Per row: what was found, changed columns, changed categories, and the level of school before and after."""
    words = set(data.train.select_dtypes(exclude="number").columns)
    changes = [[change for change in one.changes() if change.feature in words] for one in e]
    level = np.full((len(e), 2), np.nan)
    for i, one in enumerate(changes):
        for change in one:
            if change.feature == "education":
                level[i] = data.levels[change.before], data.levels[change.after]
    there = validity(e) == 1
    return {
        "validity": there.astype(float),
        "on_the_path": (e.status == "found").astype(float),
        "changes": np.where(there, [len(one.changes()) for one in e], np.nan),
        "categories": np.where(there, [len(one) for one in changes], np.nan),
        "level_before": level[:, 0],
        "level_after": level[:, 1],
    }


def run(store: Store, data: Data, size: Size, *, progress: bool = True) -> Iterator[tuple[int, str, bool, Explanation]]:
    """Seed, distance, polish and outcome of every search."""
    work = [(seed, name, polish) for seed in range(size.seeds) for name in DISTANCES for polish in (False, True)]
    for seed, name, polish in tqdm(work, desc="adult", unit="search", disable=not progress):
        model = network(store, data, seed, size)
        settings = {"rows": size.rows, "epochs": size.epochs, "train": len(data.train), "polish": polish}
        file = f"seed{seed}/{name}_polish{polish:g}"
        kept = store.get(file, settings, lambda m=model, n=name, p=polish: search(data, m, n, p, size.rows))
        yield seed, name, polish, Explanation.from_json(str(kept["explanation"]))


def example(e: Explanation, data: Data) -> Explanation:
    """The line with the fewest changes among those that change education and another category."""
    words = set(data.train.select_dtypes(exclude="number").columns)
    changed = [{change.feature for change in one.changes()} for one in e]

    def rank(i: int) -> tuple[bool, bool, int]:
        return "education" in changed[i], len(changed[i] & words) > 1, -len(changed[i])

    return e[max(range(len(e)), key=rank)]


def main(places: Places, size: Size, data: Data | None = None, *, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    import adult_report

    torch.set_num_threads(1)
    data = data or Data.load()
    store = Store(places.cache / "adult")
    outcomes = list(run(store, data, size, progress=progress))
    found = [(seed, name, polish, measured(e, data)) for seed, name, polish, e in outcomes]
    person = example(next(e for _, name, polish, e in outcomes if (name, polish) == ("abdm", True)), data)
    embeddings = {name: education(data, name) for name in ("abdm", "mvdm")} | {"frequency": shares(data)}
    adult_report.write(found, embeddings, data.levels, person, size, places, store.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=Size().seeds, help="how often the network is trained anew")
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    arguments = parser.parse_args()
    main(Places(cache=arguments.cache), Size(seeds=arguments.seeds))
