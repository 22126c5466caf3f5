"""`cfproto explain`: a saved model and two tables in, counterfactuals out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cfproto_plugin.cli import rules as rule_files
from cfproto_plugin.cli.models import feature_names, load_model, reason
from cfproto_plugin.cli.show import as_lines, as_records, explained, failures
from cfproto_plugin.cli.tables import TABLES, check_format, is_text, read_table, select, suffix_of, without, write_table
from cfproto_plugin.errors import CfprotoError, InputError, ModelError
from cfproto_plugin.plugins import Adapted, adapted
from cfproto_plugin.report import as_table, counted

if TYPE_CHECKING:
    from cfproto_plugin.explainer import CounterfactualExplainer
    from cfproto_plugin.explanation import Explanation

_OUTPUTS = (*TABLES, ".json", ".html")
_Command = TypeVar("_Command", bound=Callable[..., Any])
_INTERVAL = re.compile(r"(?P<label>.+):(?P<low>\d*\.?\d*)\.\.(?P<high>\d*\.?\d*)")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLES = """\b
Examples:
  cfproto explain model.json --train train.csv --rows new.csv --drop target
  cfproto explain model.json --train train.csv --rows rejected.csv \\
      --immutable sex,race --increasing age --range age=17:90 -o answers.csv
  cfproto explain pipeline.joblib --train train.parquet --rows rejected.csv \\
      --target granted --rules rules.toml -o report.html
  cfproto explain mypackage.models:load --train train.csv --rows new.csv --json
\b
rules.toml has the fields of Features, and those of SearchConfig in [search]:
  immutable = ["sex", "race"]
  ranges = { age = [17, 90] }
  [search]
  max_changes = 3
\b
Exit status:
  0  every row has a counterfactual
  1  some rows have none, or cannot be read or predicted; standard error says why
  2  the model, a table, a rule or an option cannot be used
"""


class BadInput(click.ClickException):
    """An error of what was given, shown without traceback."""

    exit_code = 2


@contextmanager
def _working() -> Iterator[None]:
    """Errors of the input are shown as such, and what a model prints does not get into the result."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (CfprotoError, ImportError, OSError) as error:
        raise BadInput(str(error)) from error


def _several(flag: str, field: str, metavar: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(flag, field, multiple=True, metavar=metavar, help=text)


@click.command("explain", short_help="Explain rows of a table with a saved model.", epilog=_EXAMPLES)
@click.argument("model")
@click.option("--train", required=True, type=_FILE, help="Training rows: .csv, .csv.gz or .parquet.")
@click.option("--rows", required=True, type=_FILE, help="The rows to explain, likewise.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .csv, .csv.gz, .parquet, .json or .html. Without it the changes are printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object per counterfactual.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Explain only the first N rows.")
@_several("--drop", "drop", "COLUMN,...", "Leave out what is no feature, such as the target.")
@_several(
    "--target",
    "target",
    "LABEL",
    "An acceptable target class; default: any other class. LABEL:0.7..0.9 asks for a probability of it in between.",
)
@click.option("-n", "--n", default=1, show_default=True, type=click.IntRange(1), help="Counterfactuals per row.")
@_several("--immutable", "immutable", "COLUMN,...", "Columns that keep their value.")
@_several("--vary", "vary", "COLUMN,...", "Only these columns may change.")
@_several("--increasing", "increasing", "COLUMN,...", "Columns that may only rise.")
@_several("--decreasing", "decreasing", "COLUMN,...", "Columns that may only fall.")
@_several("--range", "ranges", "COLUMN=LOW:HIGH", "Bounds of a column; either may be left out.")
@_several("--allowed", "allowed", "COLUMN=VALUE,...", "The categories or numbers a column may take.")
@_several("--step", "step", "COLUMN=SIZE", "Changed values are multiples of it.")
@_several("--weight", "weights", "COLUMN=W", "Makes changes of a column W times as costly.")
@_several("--relation", "relations", "EXPRESSION", 'What must hold between columns, such as "a + b <= 3".')
@_several(
    "--integer", "integer", "COLUMN,...", "Whole numbers. Columns without a decimal point are found by themselves."
)
@_several(
    "--categorical",
    "categorical",
    "COLUMN,...",
    "Numbers without an order; text is found by itself. A text column named here gets the pandas dtype category, for "
    "models trained on it.",
)
@click.option("--rules", type=_FILE, help="A TOML file of rules and settings; flags add to it and win.")
@click.option(
    "--preset", type=click.Choice(rule_files.PRESETS), help="Settings that go together; options and --rules win."
)
@click.option("--max-changes", type=int, metavar="N", help="At most N columns change.")
@click.option("--few-changes", type=float, metavar="PRICE", help="Price of a changed column: 1 prefers few.")
@click.option("--min-proba", type=float, metavar="P", help="Probability that the new class must reach.")
@click.option("--min-typicality", type=float, metavar="Q", help="How typical of the new class; 0 is off.")
@click.option("--min-stability", type=float, metavar="SHARE", help="Share of noisy copies that keep the class.")
@click.option("--noise", type=float, metavar="SD", help="Of these copies, in standard deviations.")
@click.option(
    "--theta", type=float, metavar="WEIGHT", help="From 0, close to the row, to 5 and more, close to the class."
)
@click.option("--polish/--no-polish", default=None, help="Improve what the search found; default: for tables.")
@click.option("--time-budget", type=float, metavar="SECONDS", help="Return the best found in this time.")
@click.option("--prototypes", default="auto", show_default=True, metavar="NAME", help="Prototype provider.")
@click.option("--distance", default="abdm", show_default=True, metavar="NAME", help="Distance between categories.")
@click.option("--adapter", metavar="NAME", help="Adapter to use instead of the one for the model's type.")
@click.option("--seed", default=0, show_default=True, help="For plugins that draw random numbers.")
@click.option("--progress/--no-progress", default=None, help="Show a bar; default: on a terminal, if it takes long.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Explain rows of a table: what would have to change for MODEL to put them in another class?

    MODEL is a file that an installed plugin reads (`cfproto plugins` lists their suffixes), or package.module:function,
    a function without arguments that returns the model. Some files, pickles above all, run code when they are loaded: a
    warning says so; use only files you trust.

    What is returned was predicted again by the model, and every rule holds on it. Options that name a column or a
    label can be repeated.
    """
    with _working():
        _check_output(given)
        explainer, rows = _fitted(given)
        explanation = explainer.explain(
            rows,
            target=_labels(explainer, given["target"]),
            n=given["n"],
            time_budget=given["time_budget"],
            progress=given["progress"],
        )
        if given["output"]:
            _write(explanation, given["output"], f"Counterfactuals of {given['rows'].name}")
    if given["as_json"]:
        click.echo(json.dumps(as_records(explanation), indent=2, ensure_ascii=False, allow_nan=False))
    elif not given["output"]:
        for line in as_lines(explanation):
            click.echo(line)
    context.exit(_say(explanation, given["output"]))


def _check_output(given: dict[str, Any]) -> None:
    """Before the work, not after it."""
    output = given["output"]
    if output is None:
        return
    suffix_of(output, _OUTPUTS, "the output")
    check_format(output)
    if not output.parent.is_dir():
        raise InputError(f"the output {str(output)!r} cannot be written: there is no folder {str(output.parent)!r}")
    for name in ("model", "train", "rows", "rules"):
        if given[name] is not None and Path(given[name]).resolve() == output.resolve():
            raise InputError(f"the output {str(output)!r} is also given as the {name}; choose another name")


def _fitted(given: dict[str, Any]) -> tuple[CounterfactualExplainer, Any]:
    """An explainer that has seen the training table, and the rows to explain."""
    from cfproto_plugin.explainer import CounterfactualExplainer

    rules, settings = rule_files.read_rules(given["rules"])
    search = rule_files.make_search(settings, given)
    model = load_model(given["model"], lambda text: click.echo(f"Warning: {text}", err=True))
    made = adapted(model, given["adapter"], seed=given["seed"])
    train, rows = _tables(given, model, made)
    features = rule_files.make_features(rules, given, train)
    texts = [name for name in train.columns if is_text(train[name])]
    named = [name for name in texts if name in features.categorical]
    explainer = CounterfactualExplainer(
        model,
        adapter=made.adapter,
        prototypes=given["prototypes"],
        distance=given["distance"],
        features=features,
        search=search,
        seed=given["seed"],
    )
    try:
        return explainer.fit(train.astype(dict.fromkeys(named, "category"))), rows
    except Exception as error:
        foreign = not isinstance(error, CfprotoError)
        if not foreign and not isinstance(error, ModelError):
            raise
        text = f"the model cannot predict the rows of {given['train']}: {reason(error)}" if foreign else str(error)
        hint = "If the model was trained on columns of the pandas dtype category, name them with --categorical."
        raise InputError(f"{text}\n{hint}" if named != texts else text) from error


def _tables(given: dict[str, Any], model: Any, made: Adapted) -> tuple[Any, Any]:
    """Both tables with the columns of the model or, if it does not name them, of the training table."""
    train = read_table(given["train"])
    train, rows = without([train, read_table(given["rows"], like=train)], given["drop"])
    names = feature_names(model, made, list(train.columns))
    owner = "the model" if names else str(given["train"])
    names = names or list(train.columns)
    train = select(train, names, given["train"], owner)[names]
    return train, select(rows, names, given["rows"], owner)[: given["limit"]]


def _labels(explainer: CounterfactualExplainer, target: tuple[str, ...]) -> list[Any] | dict[Any, Any] | None:
    """The classes of these names, 1 and "1" look the same on a command line; or the probabilities that they ask for."""
    if not target or explainer.fitted_ is None:
        return None
    known = {str(label): label for label in explainer.fitted_.classes.tolist()}
    asked = [None if text in known else _INTERVAL.fullmatch(text) for text in target]
    if not any(asked):
        return [known.get(label, label) for label in target]
    if not all(asked):
        raise InputError(f"--target {' --target '.join(target)}: expected labels, or LABEL:LOW..HIGH for each of them")
    pairs = [(found["label"], found["low"], found["high"]) for found in asked if found]
    return {known.get(label, label): (float(low or 0), float(high or 1)) for label, low, high in pairs}


def _write(explanation: Explanation, output: Path, title: str) -> None:
    suffix = suffix_of(output, _OUTPUTS, "the output")
    if suffix == ".json":
        output.write_text(explanation.to_json(), encoding="utf-8")
    elif suffix == ".html":
        from cfproto_plugin.report import write_report

        write_report(explanation, output, title=title)
    else:
        write_table(as_table(explanation), output)


def _say(explanation: Explanation, output: Path | None) -> int:
    """Reasons and a summary on standard error; returns the exit status."""
    for line in failures(explanation):
        click.echo(line, err=True)
    rows, done = (len(set(e.row.tolist())) for e in (explanation, explained(explanation)))
    where = f"{output}: " if output else ""
    counts = f"{done:,} of {counted(rows, 'row')} explained"
    if len(explanation) > rows:
        counts += f" by {counted(len(explained(explanation)), 'counterfactual')}"
    click.echo(f"{where}{counts} in {explanation.meta['seconds']:.2f} s", err=True)
    return 0 if done == rows else 1
