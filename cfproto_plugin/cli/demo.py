"""`cfproto demo`: what `make demo` calls."""

from __future__ import annotations

from pathlib import Path

import click

from cfproto_plugin.errors import CfprotoError


@click.command("demo")
@click.option("--rows", default=5, show_default=True, type=click.IntRange(1, 100), help="How many rows to explain.")
@click.option(
    "--output",
    default="cfproto-report.html",
    show_default=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The report to write.",
)
def command(rows: int, output: Path) -> None:
    """Explain boosted trees on the Breast Cancer data and write a report."""
    from cfproto_plugin.cli.breast_cancer import run

    try:
        run(rows, output, click.echo)
    except (CfprotoError, ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error
