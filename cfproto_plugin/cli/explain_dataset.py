"""`cfproto explain-dataset`: a saved explainer and Parquet files in, Parquet files of counterfactuals out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfproto_plugin.cli.fitting import several, working
from cfproto_plugin.cli.saved import loaded
from cfproto_plugin.cli.targets import TARGET, asked_classes
from cfproto_plugin.config import PRESETS
from cfproto_plugin.report import counted

if TYPE_CHECKING:
    from cfproto_plugin.integrations.datasets import DatasetReport

_STOPPED = 130  # as shells report a process that SIGINT ended
_EXAMPLES = """\b
Examples:
  cfproto save model.json --train train.csv --drop target -o explainer.zip
  cfproto explain-dataset explainer.zip rows.parquet answers --keep id --workers all
\b
Exit status:
  0    every block is answered; rows without a counterfactual say why
  1    a block or a file cannot be read or explained; standard error names it, and the others are answered
  2    the explainer, a folder or an option cannot be used
  130  stopped; the same command goes on where it was
"""
_COUNT = click.IntRange(1)


class _Workers(click.ParamType[Any]):
    """A number, or "all"."""

    name = "workers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "all" else _COUNT.convert(value, param, ctx)


@click.command("explain-dataset", short_help="Explain Parquet files with a saved explainer.", epilog=_EXAMPLES)
@click.argument("explainer", type=click.Path(exists=True, path_type=Path))
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("sink", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--model", help="The model, if it was left out of the saved explainer: a file, or package.module:function."
)
@several("--trust", "trusted", "NAME", "A type or function that the saved explainer may restore.")
@TARGET
@click.option("-n", "--n", default=1, show_default=True, type=_COUNT, help="Counterfactuals per row.")
@click.option("--preset", type=click.Choice([*PRESETS]), help="Settings in place of those of the explainer.")
@click.option("--time-budget", type=float, metavar="SECONDS", help="Per block: return the best found in this time.")
@several("--keep", "keep", "COLUMN", "A column that the answers have too, such as a key.")
@click.option("--block-rows", default=1000, show_default=True, type=_COUNT, help="Rows per file of answers, at most.")
@click.option(
    "--workers",
    default="1",
    show_default=True,
    type=_Workers(),
    metavar="N|all",
    help="Processes, or actors of Ray; all is one per core.",
)
@click.option("--engine", default="local", show_default=True, type=click.Choice(["local", "ray"]), help="Who works.")
@click.option("--progress/--no-progress", default=None, help="Show a bar; default: on a terminal, if it takes long.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Explain every row of SOURCE, a Parquet file or a folder of them, with an EXPLAINER that `cfproto save` wrote.

    SINK is a folder. It gets one file of answers for every block of rows, and a manifest. A job that was stopped, by
    whatever means, goes on with the same command: blocks that are finished are not done again.
    """
    with working():
        try:
            report = _explained(given)
        except KeyboardInterrupt:
            click.echo(f"{given['sink']}: stopped; the same command goes on with what is left", err=True)
            context.exit(_STOPPED)
    context.exit(_say(report))


def _explained(given: dict[str, Any]) -> DatasetReport:
    from cfproto_plugin.integrations.datasets import explain_dataset

    explainer = loaded(given)
    named = ("n", "preset", "time_budget", "keep", "block_rows", "workers", "engine", "trusted", "progress")
    return explain_dataset(
        explainer,
        given["source"],
        given["sink"],
        target=asked_classes(explainer, given["target"]),
        **{name: given[name] for name in named},
    )


def _say(report: DatasetReport) -> int:
    """Reasons and a summary on standard error; returns the exit status."""
    for reason in report.failed.values():
        click.echo(reason, err=True)
    before = f", {report.done_before:,} of them before" if report.done_before else ""
    failed = f"; {counted(len(report.failed), 'block')} failed" if report.failed else ""
    click.echo(
        f"{report.sink}: {report.found:,} of {counted(report.rows, 'row')} explained in "
        f"{counted(report.blocks, 'block')}{before}{failed}, {report.seconds:.2f} s",
        err=True,
    )
    return 1 if report.failed else 0
