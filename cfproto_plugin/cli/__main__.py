"""`python -m cfproto_plugin.cli`, where the command `cfproto` is not on the path."""

from cfproto_plugin.cli import main

main(prog_name="cfproto")
