"""What `cfproto explain` and `cfproto save` share: the options of an explainer, and one that is fitted by them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cfproto_plugin.cli import rules as rule_files
from cfproto_plugin.cli.models import feature_names, load_model, one_paragraph, reason
from cfproto_plugin.cli.tables import is_text, read_otherwise, read_table, select, with_dates, without
from cfproto_plugin.config import PRESETS
from cfproto_plugin.errors import CfprotoError, InputError, ModelError
from cfproto_plugin.plugins import Adapted, adapted

if TYPE_CHECKING:
    from cfproto_plugin.explainer import CounterfactualExplainer

_Command = TypeVar("_Command", bound=Callable[..., Any])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class BadInput(click.ClickException):
    """An error of what was given, shown without traceback."""

    exit_code = 2


@contextmanager
def working() -> Iterator[None]:
    """Errors of the input are shown as such, and what a model prints does not get into the result."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (CfprotoError, ImportError, OSError) as error:
        raise BadInput(str(error)) from error


def several(flag: str, field: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(flag, field, multiple=True, metavar=metavar, help=text)


def warn(text: str) -> None:
    """Say on standard error what the user should know."""
    click.echo(f"Warning: {text}", err=True)


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Show the warnings of Python as those of the command."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        yield
    for text in dict.fromkeys(one_paragraph(each.message) for each in caught):
        warn(text)


# The options of an explainer, in the order of the help.
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    several("--immutable", "immutable", "COLUMN,...", "Columns that keep their value."),
    several("--vary", "vary", "COLUMN,...", "Only these columns may change."),
    several("--increasing", "increasing", "COLUMN,...", "Columns that may only rise."),
    several("--decreasing", "decreasing", "COLUMN,...", "Columns that may only fall."),
    several("--range", "ranges", "COLUMN=LOW:HIGH", "Bounds of a column; either may be left out."),
    several("--allowed", "allowed", "COLUMN=VALUE,...", "The categories or numbers a column may take."),
    several("--step", "step", "COLUMN=SIZE", "Changed values are multiples of it."),
    several("--weight", "weights", "COLUMN=W", "Counts changes of a column W times; above 1 it changes less."),
    several("--relation", "relations", "EXPRESSION", 'What must hold between columns, such as "a + b <= 3".'),
    several(
        "--integer", "integer", "COLUMN,...", "Whole numbers. Columns without a decimal point are found by themselves."
    ),
    several(
        "--categorical",
        "categorical",
        "COLUMN,...",
        "Numbers without an order; text is found by itself. A text column named here gets the pandas dtype category, "
        "for models trained on it; auto names all text columns.",
    ),
    several(
        "--dates", "dates", "COLUMN,...", "Dates, which a CSV holds as text; in Parquet they are found by themselves."
    ),
    several("--class-names", "class_names", "LABEL=NAME,...", "What texts and reports call the classes."),
    click.option("--rules", type=FILE, help="A TOML file of rules and settings; flags add to it and win."),
    click.option("--preset", type=click.Choice([*PRESETS]), help="Settings that go together; options and --rules win."),
    click.option("--max-changes", type=int, metavar="N", help="At most N columns change."),
    click.option("--few-changes", type=float, metavar="PRICE", help="Price of a changed column: 1 prefers few."),
    click.option("--min-proba", type=float, metavar="P", help="Probability that the new class must reach."),
    click.option("--min-typicality", type=float, metavar="Q", help="How typical of the new class; 0 is off."),
    click.option(
        "--min-stability", type=float, metavar="SHARE", help="Share of small random changes that keep the class."
    ),
    click.option("--min-confidence", type=float, metavar="SHARE", help="How sure the model is of it; 0 is off."),
    click.option("--noise", type=float, metavar="SD", help="Size of these changes, in standard deviations."),
    click.option(
        "--theta", type=float, metavar="WEIGHT", help="From 0, close to the row, to 5 and more, close to the class."
    ),
    click.option("--polish/--no-polish", default=None, help="Improve what the search found; default: for tables."),
    click.option("--prototypes", default="auto", show_default=True, metavar="NAME", help="Prototype provider."),
    click.option("--distance", default="abdm", show_default=True, metavar="NAME", help="Distance between categories."),
    click.option("--adapter", metavar="NAME", help="Adapter to use instead of the one for the model's type."),
    click.option("--seed", default=0, show_default=True, help="For plugins that draw random numbers."),
)


def explainer_options(command: _Command) -> _Command:
    """Add the options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def fitted(given: Mapping[str, Any]) -> tuple[CounterfactualExplainer, Any]:
    """An explainer that has seen the training table, and the rows to explain if they are given."""
    from cfproto_plugin.explainer import CounterfactualExplainer
    from cfproto_plugin.search.training import ON_CATEGORIES

    rules, settings = rule_files.read_rules(given["rules"])
    search = rule_files.make_search(settings, given)
    model = load_model(given["model"], warn)
    made = adapted(model, given["adapter"], seed=given["seed"])
    train, rows = _tables(given, model, made)
    texts = [name for name in train.columns if is_text(train[name])]
    if "auto" in given["categorical"] and "auto" not in train.columns:  # as XGBoost's own categories are
        others = [text for text in given["categorical"] if text != "auto"]
        given = {**given, "categorical": [*others, *texts]}
    features = rule_files.make_features(rules, given, train)
    named = [name for name in texts if name in features.categorical]
    explainer = CounterfactualExplainer(
        model,
        adapter=given["adapter"],
        prototypes=given["prototypes"],
        distance=given["distance"],
        features=features,
        search=search,
        class_names=rule_files.class_names(given["class_names"]),
        seed=given["seed"],
    )
    try:
        return explainer.fit(train.astype(dict.fromkeys(named, "category"))), rows
    except Exception as error:
        foreign = not isinstance(error, CfprotoError)
        if not foreign and not isinstance(error, ModelError):
            raise
        text = f"the model cannot predict the rows of {given['train']}: {reason(error)}" if foreign else str(error)
        otherwise = read_otherwise(given["train"], train)
        if named == texts:
            raise InputError(f"{text}{otherwise}") from error
        hint = f"{ON_CATEGORIES}, name them with --categorical; --categorical auto names all columns of text."
        raise InputError(f"{text.partition(ON_CATEGORIES)[0].rstrip()}\n{hint}{otherwise}") from error


def _tables(given: Mapping[str, Any], model: Any, made: Adapted) -> tuple[Any, Any]:
    """Both tables with the columns of the model or, if it does not name them, of the training table."""
    train = with_dates(read_table(given["train"]), given["dates"], given["train"])
    others = [read_table(given["rows"], like=train)] if given["rows"] is not None else []
    train, *others = without([train, *others], given["drop"])
    names = feature_names(model, made, list(train.columns))
    owner = "the model" if names else str(given["train"])
    names = names or list(train.columns)
    train = select(train, names, given["train"], owner)[names]
    rows = [select(table, names, given["rows"], owner)[: given["limit"]] for table in others]
    return train, rows[0] if rows else None
