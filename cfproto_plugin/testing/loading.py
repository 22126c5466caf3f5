"""Which frameworks loading a plugin imports: seen from a process of its own, where nothing is imported yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from types import ModuleType

from cfproto_plugin.hookspecs import PROJECT
from cfproto_plugin.plugins import Registry
from cfproto_plugin.testing.kit import require

FRAMEWORKS = frozenset(["torch", "tensorflow", "keras", "jax", "xgboost", "catboost", "pandas", "matplotlib"])
_SECONDS = 120


def loading_imports_no_framework(plugin: str | ModuleType, frameworks: Iterable[str] = FRAMEWORKS) -> None:
    """Import the plugin, "module" or "module:object", call its hooks, and look at `sys.modules`.

    Frameworks are those given and the packages of the classes that the plugin claims, except its own package.
    """
    target = plugin.__name__ if isinstance(plugin, ModuleType) else plugin
    command = [sys.executable, "-c", f"from {__name__} import tell; tell()", target, *frameworks]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(  # noqa: S603 a function of this module, with the name of a plugin
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        env={**os.environ, "PYTHONPATH": path},
    )
    lines = done.stdout.splitlines()
    require(done.returncode == 0 and bool(lines), f"{target} does not load: {_last_line(done.stderr)}")
    imported = json.loads(lines[-1])
    require(
        not imported,
        f"loading {target} imports {', '.join(imported)}: import frameworks inside the functions that need them",
    )


def tell() -> None:
    """Run in the other process: load the plugin of the command line and write which frameworks that imported."""
    found = _imported_by(sys.argv[1], set(sys.argv[2:]))
    sys.stdout.write(f"\n{json.dumps(found)}\n")


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no message")


def _imported_by(target: str, frameworks: set[str]) -> list[str]:
    before = set(sys.modules)
    report = Registry().register(EntryPoint("plugin", target, PROJECT).load(), "plugin")
    claimed = {claim.partition(".")[0].partition(":")[0] for spec in report.adapters for claim in spec.claims}
    wanted = frameworks | claimed - {target.partition(":")[0].partition(".")[0]}
    return sorted(wanted & set(sys.modules) - before)
