"""`cfproto plugins`: what is installed, what it offers and what broke."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import click

from cfproto_plugin.plugins import registry
from cfproto_plugin.report import aligned

if TYPE_CHECKING:
    from cfproto_plugin.plugins import PluginReport


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the plugins, what they offer and what broke. Exit status 1 if anything is broken."""
    # What is broken is said in the table; the library's warning about it would say it twice.
    logging.getLogger("cfproto_plugin").addHandler(logging.NullHandler())
    reports = registry().reports
    if as_json:
        click.echo(json.dumps([_record(report) for report in reports], indent=2))
    else:
        for line in aligned([_cells(report) for report in reports], right=(3,)):
            click.echo(line)
    context.exit(1 if registry().broken() else 0)


def _record(report: PluginReport) -> dict[str, object]:
    kinds = {kind: report.offers.get(kind, []) for kind in ("adapters", "prototypes", "distances")}
    head = {"name": report.name, "status": report.status, "source": report.source, "seconds": report.seconds}
    return {**head, **kinds, "error": report.error}


def _cells(report: PluginReport) -> tuple[str, ...]:
    offers = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in report.offers.items())
    note = " ".join(report.error.split()) or offers
    return report.name, report.status, report.source, f"{1000 * report.seconds:.0f} ms", note
