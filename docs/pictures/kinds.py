"""Draw every kind of `e.plot()` for docs/pictures.md and docs/cohorts.md: `python docs/pictures/kinds.py [names]`.

In the environment of `make test`; CFPROTO_DATA must name the folder that holds Adult.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.datasets import load_adult

IMAGES = Path(__file__).resolve().parent
RULES = Features(immutable=("sex", "race", "native-country", "relationship", "marital-status"), increasing=("age",))


@cache
def tumours() -> tuple[Any, Any]:
    """An explainer of boosted trees on Breast Cancer, and held-back rows."""
    found = load_breast_cancer(as_frame=True)
    labels = found.target_names[found.target]
    train, test, y_train, _ = train_test_split(found.data, labels, test_size=100, stratify=labels, random_state=0)
    model = HistGradientBoostingClassifier(random_state=0).fit(train, y_train)
    return CounterfactualExplainer(model).fit(train), test


def boosted(train: pd.DataFrame, labels: Any) -> Any:
    """Boosted trees behind ordinal codes of the columns of text."""
    text = train.select_dtypes(exclude="number").columns.tolist()
    coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    columns = make_column_transformer((coded, text), remainder="passthrough")
    return make_pipeline(columns, HistGradientBoostingClassifier(random_state=0)).fit(train, labels)


@cache
def adult() -> tuple[Any, Any]:
    """An explainer of boosted trees on Adult with rules, and rows of the test part that earn up to 50K."""
    train, income = load_adult(split="train")
    model = boosted(train[:8000], income[:8000])
    test, _ = load_adult(split="test")
    poor = test[model.predict(test) == "<=50K"]
    return CounterfactualExplainer(model, features=RULES).fit(train[:8000]), poor.reset_index(drop=True)


@cache
def digits() -> tuple[Any, Any]:
    """A network on 8x8 digits with an encoder and an autoencoder, both from principal components, and test images."""
    x, y = load_digits(return_X_y=True)
    train, test, y_train, _ = train_test_split(x / 16, y, test_size=200, random_state=0)
    model = MLPClassifier((64,), max_iter=1000, random_state=0).fit(train, y_train)
    parts = PCA(16, random_state=0).fit(train)

    def copied(rows: Any) -> Any:
        return parts.inverse_transform(parts.transform(rows))

    explainer = CounterfactualExplainer(model, encoder=parts, autoencoder=copied).fit(train)
    return explainer, test


def changes() -> Any:
    explainer, rows = adult()
    return explainer.explain(rows[27:28]).plot()


def changes_numbers() -> Any:
    explainer, rows = tumours()
    return explainer.explain(rows[:1]).plot()


def unanswered() -> Any:
    explainer, rows = tumours()
    return explainer.explain(rows[:1], features=Features(vary=("worst area", "worst texture"))).plot()


def images() -> Any:
    explainer, rows = digits()
    return explainer.explain(rows[[3, 8, 12]]).plot(shape=(8, 8))


def cohort() -> Any:
    explainer, rows = adult()
    return explainer.explain(rows[:200], progress=False).summary(by="sex").plot()


def comparison() -> Any:
    explainer, rows = adult()
    return explainer.explain(rows[23:24], n=4).plot()


def path() -> Any:
    explainer, rows = tumours()
    return explainer.explain(rows[:1]).plot("path")


def embedding() -> Any:
    explainer, rows = adult()
    return explainer.explain(rows[26:27]).plot("embedding", column="education")


KINDS: dict[str, Callable[[], Any]] = {
    each.__name__: each for each in (changes, changes_numbers, unanswered, images, cohort, comparison, path, embedding)
}


def main(names: list[str]) -> None:
    """Write docs/pictures/plot-<name>.png."""
    for name in names or KINDS:
        KINDS[name]().savefig(IMAGES / f"plot-{name.replace('_', '-')}.png", dpi=90)


if __name__ == "__main__":
    main(sys.argv[1:])
