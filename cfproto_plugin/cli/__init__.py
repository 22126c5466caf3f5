"""The command `cfproto`: one file per subcommand."""

from __future__ import annotations

import click

from cfproto_plugin.cli import check, demo, explain, explain_dataset, new_plugin, plugins, save


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cfproto-plugin", prog_name="cfproto")
def main() -> None:
    """Counterfactual explanations guided by class prototypes."""


for _module in (explain, explain_dataset, save, plugins, check, new_plugin, demo):
    main.add_command(_module.command)
