"""Writes the explainers that later versions must load: `python tests/files/golden.py`, once for every schema.

A file that is there already is left as it is: it stands for the version that wrote it.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import saved_cases

from cfproto_plugin import CounterfactualExplainer

FOLDER = Path(__file__).parent.parent / "golden" / "explainers" / "schema-1"
NEEDS = {"torch_table": "torch", "keras_table": "keras", "polars_pipeline": "polars", "arrow_boosted": "pyarrow"}


def weights():
    """A network that separates `saved_cases.numbers`, more or less, without training."""
    hidden = np.zeros((4, 8), dtype=np.float32)
    hidden[0, :4], hidden[1, 4:] = (1, -1, 0.5, -0.5), (1, -1, 0.5, -0.5)
    out = np.stack([-hidden.sum(axis=0) - 0.5, hidden.sum(axis=0) + 0.5], axis=1).astype(np.float32)
    return [hidden, np.zeros(8, np.float32), out, np.zeros(2, np.float32)]


def torch_table():
    import torch

    x = saved_cases.numbers()[0].astype(np.float32)
    model = saved_cases.net([(4, 8), (8, 2)])
    for parameter, value in zip(model.parameters(), weights(), strict=True):
        parameter.data = torch.from_numpy(value.T.copy())
    return CounterfactualExplainer(model).fit(x), x[:4]


def keras_table():
    import keras

    x = saved_cases.numbers()[0].astype(np.float32)
    layers = [keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(2, "softmax")]
    model = keras.Sequential(layers)
    model.set_weights(weights())
    return CounterfactualExplainer(model).fit(x), x[:4]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for case in (*saved_cases.TABLES, torch_table, keras_table):
        place = FOLDER / f"{case.__name__}.zip"
        if place.exists():
            continue
        explainer, rows = case()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            saved = explainer.save(place)
        answer = json.loads(explainer.explain(rows).to_json())
        (FOLDER / f"{case.__name__}.json").write_text(
            json.dumps({"trusted": saved.trusted, "explanation": answer}), encoding="utf-8"
        )
        sys.stdout.write(f"{place.name}: {place.stat().st_size:,} bytes, {saved.models}\n")


if __name__ == "__main__":
    main()
