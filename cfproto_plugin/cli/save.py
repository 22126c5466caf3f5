"""`cfproto save`: a model and its training table in, a file with a fitted explainer out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cfproto_plugin.cli.fitting import FILE, explainer_options, fitted, saying_warnings, several, working
from cfproto_plugin.errors import InputError

_EXAMPLES = """\b
Examples:
  cfproto save model.json --train train.csv --drop target -o explainer.zip
  cfproto explain --explainer explainer.zip --rows new.csv
"""


@click.command("save", short_help="Save a fitted explainer to a file.", epilog=_EXAMPLES)
@click.argument("model")
@click.option("--train", required=True, type=FILE, help="Training rows: .csv, .csv.gz or .parquet.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="One file if it ends in .zip or .cfproto, else a folder.",
)
@click.option("--reference", is_flag=True, help="Leave the model out; it is then given to `cfproto explain` as MODEL.")
@several("--drop", "drop", "COLUMN,...", "Leave out what is no feature, such as the target.")
@explainer_options
def command(**given: Any) -> None:
    """Fit an explainer and save it, without pickle: rules, settings, training rows and what MODEL said of them.

    The model is stored in a safe format of its own where there is one, such as XGBoost's JSON; else it is left out, and
    a warning says so.
    """
    with working():
        for name in ("model", "train", "rules"):
            if given[name] is not None and Path(given[name]).resolve() == given["output"].resolve():
                raise InputError(
                    f"the output {str(given['output'])!r} is also given as the {name}; choose another name"
                )
        explainer, _ = fitted({**given, "rows": None, "limit": None})
        with saying_warnings():
            saved = explainer.save(given["output"], model="reference" if given["reference"] else "auto")
    trust = "".join(f" --trust {name}" for name in saved.trusted)
    stored = saved.models["model"]
    model = "MODEL " if stored.startswith("by reference") else ""
    click.echo(f"{given['output']}: the model is saved {'' if model else 'as '}{stored}", err=True)
    click.echo(f"cfproto explain {model}--explainer {given['output']} --rows ROWS{trust}", err=True)
