"""A demonstration: what would have to change for a model to call a malignant tumour benign, and vice versa."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import MissingPackageError, ModelError
from cfproto_plugin.report import aligned, as_sentence, counted, ranked, value_text, write_report
from cfproto_plugin.report.purposes import only_for
from cfproto_plugin.report.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cfproto_plugin.explanation import Explanation

_HELD_BACK = 100
_SHOWN = 6
_WIDTH = 100


def run(rows: int, output: Path, say: Callable[[str], object]) -> Explanation:
    """Train, explain, ask the model about the counterfactuals, write the report; `say` gets the lines to be shown."""
    from cfproto_plugin.explainer import CounterfactualExplainer

    model, train, test, labels = _trained()
    accuracy = np.mean(model.predict(test) == labels)
    say(
        f"Boosted trees on the Breast Cancer data: {len(train)} rows to learn, {percent(accuracy)} right on "
        f"{len(test)} others.\n"
    )
    explainer = CounterfactualExplainer(model).fit(train)
    explanation = explainer.explain(test[:rows])
    for line in explanation:
        say("\n".join([*_lines(line), ""]))
    say(_verdict(model, explanation))
    path = write_report(explanation, output, title="Breast Cancer, explained by counterfactuals")
    say(f"Report: {path.resolve()}")
    return explanation


def _trained() -> tuple[Any, Any, Any, Any]:
    """A model, its training rows, held-back rows and their labels; the columns have the names of the measurements."""
    try:
        import pandas  # noqa: F401, ICN001 as_frame=True needs it
    except ImportError as error:
        raise MissingPackageError(f"the demo needs pandas ({error}): pip install pandas") from error
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.model_selection import train_test_split

    bunch = load_breast_cancer(as_frame=True)
    data, labels = bunch.data, bunch.target_names[bunch.target]
    train, test, y_train, y_test = train_test_split(data, labels, test_size=_HELD_BACK, stratify=labels, random_state=0)
    model = GradientBoostingClassifier(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=0)
    return model.fit(train, y_train), train, test, y_test


def _verdict(model: Any, explanation: Explanation) -> str:
    """Ask the model itself, not the explainer, for the class of every counterfactual."""
    claimed = explanation[explanation.found]
    predicted = model.predict(claimed.counterfactual) if len(claimed) else np.empty(0, dtype=str)
    wrong = claimed.row[predicted != claimed.counterfactual_class]
    if len(wrong):
        raise ModelError(f"the model does not give the claimed class to the counterfactuals of rows {wrong.tolist()}")
    meta = explanation.meta
    return (
        f"model.predict(counterfactuals): {', '.join(predicted)}\n"
        f"{len(claimed)} of {counted(len(explanation), 'row')} {'has' if len(explanation) == 1 else 'have'} a "
        f"counterfactual, and the model confirms each. {meta['seconds']:.2f} s, "
        f"{counted(meta['n_predict_calls'], 'predict call')}."
    )


def _lines(line: Explanation) -> list[str]:
    """The classes of one row and a table of its changes."""
    heading = f"row {line.row[0]}: {line.original_class[0]} ({percent(float(line.original_proba.max()))})"
    if line.counterfactual_class[0] is None:
        return [f"{heading}, {line.status[0]}: {line.message[0]}"]
    heading += f" -> {line.counterfactual_class[0]} ({percent(float(line.counterfactual_proba.max()))})"
    changes = ranked(line)
    rows = [(str(c.feature), value_text(c.before), "->", value_text(c.after), only_for(c)) for c in changes[:_SHOWN]]
    table = aligned([("feature", "before", "", "after", ""), *rows], right=(1, 3))
    hidden = len(changes) - len(rows)
    rest = [f"  and {counted(hidden, 'more change')}"] if hidden else []
    said = textwrap.wrap(as_sentence(line), _WIDTH)
    return [heading, *(f"  {text}" for text in [*said, *table]), *rest]
