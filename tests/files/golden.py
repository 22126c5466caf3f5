"""Writes the explainers that later versions must load: `python tests/files/golden.py`, once for every schema.

A file that is there already is left as it is: it stands for the version that wrote it, and so does the explanation
beside it, whose status and classes must not change. `python tests/files/golden.py --answers` writes `answers.json`: the
cells of the answers that the search gives now. Run it when the search was changed on purpose, and say so in the
changelog.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import saved_cases

from cfproto_plugin import CounterfactualExplainer, Explanation

FOLDER = Path(__file__).parent.parent / "golden" / "explainers" / "schema-1"
ANSWER = ("status", "counterfactual_class", "counterfactual")
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


def loaded(path, trusted):
    """The explainer, whatever versions it was saved with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CounterfactualExplainer.load(path, **saved_cases.HANDED.get(path.stem, dict)(), trusted=trusted)


def kept(path):
    """What lies beside a saved explainer: the types to trust, and the explanation that it gave when it was saved."""
    found = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found["trusted"], Explanation.from_json(json.dumps(found["explanation"]))


def write_answers() -> None:
    """Store what every saved explainer answers now, for the rows that it was asked about when it was saved."""
    answers = {}
    for path in sorted(FOLDER.glob("*.zip")):
        trusted, explanation = kept(path)
        found = json.loads(loaded(path, trusted).explain(explanation.original).to_json())
        answers[path.stem] = {name: found[name] for name in ANSWER}
    lines = [f"{json.dumps(case)}: {json.dumps(answer)}" for case, answer in answers.items()]
    (FOLDER / "answers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


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
    write_answers() if sys.argv[1:] == ["--answers"] else main()
