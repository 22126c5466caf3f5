"""A saved explainer on the command line, and rows in the columns of its training data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfproto_plugin.cli.fitting import saying_warnings, warn
from cfproto_plugin.cli.models import load_model
from cfproto_plugin.cli.tables import read_table, select, without
from cfproto_plugin.errors import FileError
from cfproto_plugin.helpers.kinds import library_of, to_pandas

if TYPE_CHECKING:
    from cfproto_plugin.explainer import CounterfactualExplainer

_TRUSTED = re.compile(r"trusted=\[([^]]*)\]")  # of messages, which name the argument of Python


def loaded(given: Mapping[str, Any]) -> CounterfactualExplainer:
    """The explainer that is saved in a file, with the model and the trusted types that are given."""
    from cfproto_plugin.explainer import CounterfactualExplainer

    model = None if given["model"] is None else load_model(given["model"], warn)
    try:
        with saying_warnings():
            return CounterfactualExplainer.load(given["explainer"], model, trusted=given["trusted"])
    except FileError as error:
        raise FileError(_TRUSTED.sub(_as_options, str(error))) from error


def _as_options(found: re.Match[str]) -> str:
    return " ".join(f"--trust {name.strip(chr(39))}" for name in found[1].split(", "))


def saved_explainer(given: Mapping[str, Any]) -> tuple[CounterfactualExplainer, Any]:
    """The explainer of --explainer, and the rows to explain."""
    explainer = loaded(given)
    fitted = explainer.fitted_
    return explainer, None if fitted is None else _rows(given, fitted.data)


def _rows(given: Mapping[str, Any], train: Any) -> Any:
    """The rows, with the columns of the training data if it had names."""
    if library_of(train) is None:
        (table,) = without([read_table(given["rows"])], given["drop"])
        return table[: given["limit"]]
    like = to_pandas(train)
    like = like.astype({name: object for name, dtype in like.dtypes.items() if str(dtype) == "category"})
    (table,) = without([read_table(given["rows"], like=like)], given["drop"])
    return select(table, list(like.columns), given["rows"], "the explainer")[: given["limit"]]
