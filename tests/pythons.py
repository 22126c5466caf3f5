"""The core's tests on every supported Python that is installed: `make test-pythons`.

Each version gets a light environment, .venv-3.x, without torch and tensorflow. Tests that need a framework that is not
there are left out and say so. A Python is looked for on the path and among the versions of pyenv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PINS = TOP / "tests" / "constraints.txt"
VERSIONS = ("3.11", "3.12", "3.13")
CHOSEN = "not slow and not install and not data"


def interpreter(version: str) -> str | None:
    """A Python of that version that starts; the stand-ins of pyenv on the path may not."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    candidates = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}.*/bin/python{version}"))]
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False)
        if done.returncode == 0:
            return str(candidate)
    return None


def environment(version: str, python: str) -> Path:
    """The Python of its environment, made anew if it is older than what it is made from."""
    folder = TOP / f".venv-{version}"
    inner, stamp = folder / "bin" / "python", folder / "ready"
    sources = (TOP / "pyproject.toml", PINS)
    if not stamp.exists() or any(source.stat().st_mtime > stamp.stat().st_mtime for source in sources):
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        packages = ["-e", f"{TOP}[pandas,test]", "xgboost-cpu"]
        subprocess.run([inner, "-m", "pip", "install", "-q", "--no-compile", "-c", PINS, *packages], check=True)
        stamp.touch()
    return inner


def main() -> None:
    """Test on each; the exit status is 1 if a test failed or no version was found."""
    outcomes = {}
    for version in VERSIONS:
        python = interpreter(version)
        if python is None:
            outcomes[version] = "not installed"
            continue
        command = [environment(version, python), "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", CHOSEN]
        status = subprocess.run(command, cwd=TOP, check=False).returncode
        outcomes[version] = "passed" if status == 0 else "failed"
    for version, outcome in outcomes.items():
        sys.stdout.write(f"Python {version}: {outcome}\n")
    sys.exit("passed" not in outcomes.values() or "failed" in outcomes.values())


if __name__ == "__main__":
    main()
