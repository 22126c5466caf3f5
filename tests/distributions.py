"""Plugins installed for the time of a test: distributions in a folder on the path, as pip would leave them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

HEADER = "from cfproto_plugin import AdapterSpec, DistanceSpec, ModelFile, PrototypeSpec, hookimpl\n"


class Distributions:
    """Call it to install a distribution, then run code in a process that sees all of them."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name, version, **plugins):
        """Install a distribution with an entry point for every plugin: its name and the source of its module."""
        stem = name.replace("-", "_")
        info = self.folder / f"{stem}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        points = "".join(f"{plugin} = {stem}_{plugin}\n" for plugin in plugins)
        (info / "entry_points.txt").write_text(f"[cfproto_plugin]\n{points}", encoding="utf-8")
        for plugin, source in plugins.items():
            module = self.folder / f"{stem}_{plugin}.py"
            module.write_text(HEADER + textwrap.dedent(source), encoding="utf-8")

    def run(self, code, *arguments, status=0, **settings):
        """Run code in a process of its own; return what it printed."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": path, **settings},
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    def cfproto(self, *arguments, status=0, **settings):
        """Run the command line."""
        return self.run("from cfproto_plugin.cli import main; main()", *arguments, status=status, **settings)
