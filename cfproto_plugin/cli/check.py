"""`cfproto check`: the conformance kit from the command line."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cfproto_plugin.cli.models import folder_of
from cfproto_plugin.errors import CfprotoError
from cfproto_plugin.report import aligned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cfproto_plugin.testing import Check


class CannotRunError(click.ClickException):
    """There is nothing to check. Exit status 2, as for wrong arguments."""

    exit_code = 2


class Outcome(NamedTuple):
    """What became of a check."""

    check: str
    status: str
    reason: str


_HELP = """Check whether an adapter, a prototype provider or a distance keeps its promises.

FUNCTION takes no arguments and returns one of

\b
  model, rows                                      found by its plugin
  adapter, rows                                    the adapter alone
  provider, z, labels                              a prototype provider
  distance, codes, n_categories, context, labels   a categorical distance
  spec, ...                                        a spec and the same data

with at least three rows. MODULE is looked for in the current directory, too.

\b
Example: my_models.py holds
    def forest():
        x, y = sklearn.datasets.load_iris(return_X_y=True)
        return RandomForestClassifier().fit(x, y), x[:20]
and
    cfproto check my_models:forest

Exit status: 0 every check passed, 1 a check failed, 2 nothing could be checked.
"""


@click.command("check", help=_HELP, short_help="Check an adapter, a prototype provider or a distance.")
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option(
    "--role",
    type=click.Choice(["classifier", "transform"]),
    default="classifier",
    show_default=True,
    help="What the model is: encoders and autoencoders are a transform.",
)
@click.option(
    "--atol", default=1e-5, show_default=True, type=click.FloatRange(min=0), help="How far outputs may differ."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, target: str, role: Any, atol: float, as_json: bool) -> None:
    # What a model prints while it is made must not end up in the JSON.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        what, checks = _examined(_returned(target), target, role, atol)
        outcomes = [_outcome(check) for check in checks]
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    if as_json:
        found = {"target": target, "subject": what, "ok": not failed, "checks": [o._asdict() for o in outcomes]}
        click.echo(json.dumps(found, indent=2))
    else:
        for line in _lines(what, outcomes):
            click.echo(line)
    context.exit(1 if failed else 0)


def _lines(what: str, outcomes: list[Outcome]) -> Iterable[str]:
    yield what
    yield from aligned([(status, f"{name}: {reason}" if reason else name) for name, status, reason in outcomes])
    counts = ((status, sum(outcome.status == status for outcome in outcomes)) for status in ("ok", "failed", "skipped"))
    yield ", ".join(f"{count} {status}" for status, count in counts if count)


def _outcome(check: Check) -> Outcome:
    """Run a check. Whatever the plugin raises is a failure of that check."""
    if check.skipped:
        return Outcome(str(check), "skipped", check.skipped)
    try:
        check()
    except AssertionError as error:
        return Outcome(str(check), "failed", str(error))
    except Exception as error:  # noqa: BLE001 the other checks still tell something
        return Outcome(str(check), "failed", _in_words(error))
    return Outcome(str(check), "ok", "")


def _examined(returned: tuple[Any, ...], target: str, role: Any, atol: float) -> tuple[str, list[Check]]:
    from cfproto_plugin.testing import examine

    try:
        return examine(*returned, role=role, atol=atol)
    except CfprotoError as error:
        raise CannotRunError(f"what {target} returned cannot be checked: {error}") from error


def _returned(target: str) -> tuple[Any, ...]:
    """What the function returns, if it is a tuple."""
    function = _function(target)
    try:
        returned = function()
    except Exception as error:
        raise CannotRunError(f"{target} raised {_in_words(error)}") from error
    if not isinstance(returned, tuple) or len(returned) < 2:  # noqa: PLR2004
        raise CannotRunError(
            f"{target} returned {type(returned).__name__}; expected a tuple such as (model, rows): see cfproto check -h"
        )
    return returned


def _function(target: str) -> Any:
    module, _, name = target.partition(":")
    if not (module and name):
        raise CannotRunError(f"{target!r} names no function; expected MODULE:FUNCTION, such as my_plugin.examples:net")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise CannotRunError(f"{module} cannot be imported: {_in_words(error)}{_elsewhere(module, error)}") from error
    folder = folder_of(found)
    for part in name.split("."):
        if not hasattr(found, part):
            raise CannotRunError(f"{module}{folder} has no {name!r}{_functions(found)}")
        found = getattr(found, part)
    if not callable(found):
        raise CannotRunError(f"{target} is {type(found).__name__}; expected a function without arguments")
    return found


def _elsewhere(module: str, error: Exception) -> str:
    """Where to run the command if the module itself was not found."""
    if not isinstance(error, ModuleNotFoundError) or not f"{module}.".startswith(f"{error.name}."):
        return ""
    file = f"{module.replace('.', '/')}.py"
    return (
        f"\n  It is looked for in the current folder, too: run the command in the plugin's folder, the one with {file}"
    )


def _functions(module: Any) -> str:
    """The functions one may have meant."""
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return f"; it has {', '.join(own)}" if own else ""


def _in_words(error: Exception) -> str:
    """Type, message, and the innermost line of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = (f"{os.sep}cfproto_plugin{os.sep}", f"{os.sep}importlib{os.sep}", "<frozen")
    own = [frame for frame in frames if not any(part in frame.filename for part in foreign)]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"
