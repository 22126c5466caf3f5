"""`cfproto plugins`: what is installed, what it offers, what is slow and what broke."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import click

from cfproto_plugin.plugins import KINDS, registry
from cfproto_plugin.report import aligned

if TYPE_CHECKING:
    from cfproto_plugin.plugins import PluginReport


_HELP = """List the plugins, what they offer and what broke.

`files` are the suffixes of the model files that `cfproto explain` reads with it. A plugin that takes more than a second
to load is called slow. CFPROTO_DISABLE_PLUGINS holds the names of plugins or
distributions that are not loaded, with commas between them; one that does not exist is pointed out.

\b
Example:
    CFPROTO_DISABLE_PLUGINS=keras,torch cfproto plugins

Exit status: 0 every plugin loads, 1 a plugin is broken.
"""


@click.command("plugins", help=_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    # What is broken, slow or misspelt is said below; the library's warning about it would say it twice.
    logging.getLogger("cfproto_plugin").addHandler(logging.NullHandler())
    reports = registry().reports
    if as_json:
        click.echo(json.dumps([_record(report) for report in reports], indent=2))
    else:
        for line in aligned([_cells(report) for report in reports], right=(3,)):
            click.echo(line)
    for text in registry().advice:
        click.echo(f"note: {text}", err=True)
    context.exit(1 if registry().broken() else 0)


def _record(report: PluginReport) -> dict[str, object]:
    return {
        "name": report.name,
        "status": report.status,
        "source": report.source,
        "module": report.module,
        "seconds": report.seconds,
        "slow": report.slow,
        **{kind: report.offers.get(kind, []) for kind in KINDS},
        "files": report.suffixes,
        "error": report.error,
        "advice": report.advice,
    }


def _cells(report: PluginReport) -> tuple[str, ...]:
    offered = {**report.offers, "files": report.suffixes}
    offers = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in offered.items() if names)
    notes = [" ".join(report.error.split()), offers, report.advice]
    return report.name, report.status, report.source, f"{1000 * report.seconds:.0f} ms", "  ".join(filter(None, notes))
