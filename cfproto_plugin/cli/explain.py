"""`cfproto explain`: a saved model and two tables in, counterfactuals out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cfproto_plugin.cli.fitting import FILE, explainer_options, fitted, several, working
from cfproto_plugin.cli.saved import saved_explainer
from cfproto_plugin.cli.show import as_lines, as_records, counts_in_words, explained, failures, table_of_changes
from cfproto_plugin.cli.tables import TABLES, check_format, suffix_of, write_table
from cfproto_plugin.cli.targets import TARGET, asked_classes
from cfproto_plugin.errors import InputError
from cfproto_plugin.report import as_table

if TYPE_CHECKING:
    from cfproto_plugin.explainer import CounterfactualExplainer
    from cfproto_plugin.explanation import Explanation

_OUTPUTS = (*TABLES, ".json", ".html")
_WITH_SAVED = {  # options that can be given with a saved explainer
    *("explainer", "model", "rows", "output", "as_json", "limit", "drop", "target", "n", "time_budget", "progress"),
    *("only_changed", "trusted"),
}
_EXAMPLES = """\b
Examples:
  cfproto explain model.json --train train.csv --rows new.csv --drop target
  cfproto explain model.json --train train.csv --rows rejected.csv \\
      --immutable sex,race --increasing age --range age=17:90 -o answers.csv
  cfproto explain pipeline.joblib --train train.parquet --rows rejected.csv \\
      --target granted --rules rules.toml -o report.html
  cfproto explain model.json --train train.csv --rows new.csv \\
      --categorical auto --class-names 0=good,1=bad --only-changed -o changes.csv
  cfproto explain mypackage.models:load --train train.csv --rows new.csv --json
  cfproto explain --explainer explainer.zip --rows new.csv
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


@click.command("explain", short_help="Explain rows of a table with a saved model.", epilog=_EXAMPLES)
@click.argument("model", required=False)
@click.option("--train", type=FILE, help="Training rows: .csv, .csv.gz or .parquet.")
@click.option("--rows", required=True, type=FILE, help="The rows to explain, likewise.")
@click.option(
    "--explainer",
    type=click.Path(exists=True, path_type=Path),
    help="What `cfproto save` wrote, in place of --train and the rules. MODEL is given only if it was left out there.",
)
@several("--trust", "trusted", "NAME", "A type or function that the saved explainer may restore.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write: .csv, .csv.gz, .parquet, .json or .html. Without it the changes are printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, one object per counterfactual.")
@click.option(
    "--only-changed",
    is_flag=True,
    help="Write what changes and nothing else: a line per change in a table, changed columns alone in --json.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Explain only the first N rows.")
@several("--drop", "drop", "COLUMN,...", "Leave out what is no feature, such as the target.")
@TARGET
@click.option("-n", "--n", default=1, show_default=True, type=click.IntRange(1), help="Counterfactuals per row.")
@click.option("--time-budget", type=float, metavar="SECONDS", help="Return the best found in this time.")
@explainer_options
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
    with working():
        _check_output(given)
        explainer, rows = _ready(context, given)
        explanation = explainer.explain(
            rows,
            target=asked_classes(explainer, given["target"]),
            n=given["n"],
            time_budget=given["time_budget"],
            progress=given["progress"],
        )
        if given["output"]:
            title = f"Counterfactuals of {given['rows'].name}"
            _write(explanation, given["output"], title, only_changed=given["only_changed"])
    if given["as_json"]:
        records = as_records(explanation, only_changed=given["only_changed"])
        click.echo(json.dumps(records, indent=2, ensure_ascii=False, allow_nan=False))
    elif not given["output"]:
        for line in as_lines(explanation):
            click.echo(line)
    context.exit(_say(explanation, given["output"]))


def _check_output(given: dict[str, Any]) -> None:
    """Before the work, not after it."""
    output = given["output"]
    if output is None:
        return
    suffix = suffix_of(output, _OUTPUTS, "the output")
    if given["only_changed"] and suffix not in TABLES:
        raise InputError(f"--only-changed is for tables and --json; {str(output)!r} holds whole answers. Leave it out")
    check_format(output)
    if not output.parent.is_dir():
        raise InputError(f"the output {str(output)!r} cannot be written: there is no folder {str(output.parent)!r}")
    for name in ("model", "train", "rows", "rules", "explainer"):
        if given[name] is not None and Path(given[name]).resolve() == output.resolve():
            raise InputError(f"the output {str(output)!r} is also given as the {name}; choose another name")


def _ready(context: click.Context, given: dict[str, Any]) -> tuple[CounterfactualExplainer, Any]:
    """An explainer, fitted now or saved before, and the rows to explain."""
    if given["explainer"] is None:
        if given["model"] is None or given["train"] is None:
            raise InputError("expected MODEL and --train, or --explainer with a file that `cfproto save` wrote")
        if given["trusted"]:
            raise InputError("--trust is for --explainer: MODEL is loaded as it is")
        return fitted(given)
    for option in context.command.params:
        name = option.name or ""
        settled = name not in _WITH_SAVED and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if settled:
            raise InputError(f"{option.opts[-1]} was settled when {given['explainer']} was saved; leave it out")
    return saved_explainer(given)


def _write(explanation: Explanation, output: Path, title: str, *, only_changed: bool) -> None:
    suffix = suffix_of(output, _OUTPUTS, "the output")
    if suffix == ".json":
        output.write_text(explanation.to_json(), encoding="utf-8")
    elif suffix == ".html":
        from cfproto_plugin.report import write_report

        write_report(explanation, output, title=title)
    else:
        write_table(table_of_changes(explanation) if only_changed else as_table(explanation), output)


def _say(explanation: Explanation, output: Path | None) -> int:
    """Reasons and a summary on standard error; returns the exit status."""
    for line in failures(explanation):
        click.echo(line, err=True)
    where = f"{output}: " if output else ""
    click.echo(f"{where}{counts_in_words(explanation)}", err=True)
    return 0 if set(explained(explanation).row.tolist()) == set(explanation.row.tolist()) else 1
