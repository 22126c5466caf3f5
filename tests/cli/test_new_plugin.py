"""`cfproto new-plugin` writes a package that works as it is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from cfproto_plugin.cli import main
from cfproto_plugin.cli.new_plugin import FILES

ROOT = Path(__file__).parents[2]


def invoke(*arguments):
    return CliRunner().invoke(main, ["new-plugin", *map(str, arguments)])


def run(*command, cwd=None, **settings):
    """Run a command without the settings of this test run; return what it printed."""
    left_out = ("PYTHONPATH", "CFPROTO_DISABLE_PLUGINS", "PYTEST_ADDOPTS")
    env = {name: value for name, value in os.environ.items() if name not in left_out} | settings
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(*arguments, **settings):
    return run(sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments, **settings)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a function that builds a wheel of a folder. The build tool is fetched once, outside this environment."""
    tools = tmp_path_factory.mktemp("tools")
    if importlib.util.find_spec("hatchling") is None:
        pip("install", "--no-compile", "--target", tools, "hatchling")

    def build(folder):
        out = tmp_path_factory.mktemp("wheel")
        pip("wheel", folder, "--no-deps", "--no-build-isolation", "-w", out, PYTHONPATH=str(tools))
        (made,) = out.glob("*.whl")
        return made

    return build


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package with a dash in its name, as written."""
    directory = tmp_path_factory.mktemp("written")
    result = invoke("cfproto-acme-net", "--directory", directory)
    assert result.exit_code == 0, result.output
    return directory / "cfproto-acme-net"


@pytest.fixture(scope="module")
def python(package, wheel, tmp_path_factory):
    """Python of an environment of its own that has the product, and the package installed by pip."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # addsitedir: the product may be installed by path files, which a plain line of a path file would not follow
    parents = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site / "parent.pth").write_text("".join(f"import site; site.addsitedir({p!r})\n" for p in sorted(parents)))
    pip("--python", folder / "bin" / "python", "install", wheel(package))
    return folder / "bin" / "python"


@pytest.mark.install
def test_the_package_is_found_by_its_entry_point(python):
    code = "from cfproto_plugin.cli import main; main(['plugins', '--json'])"
    found = {record["name"]: record for record in json.loads(run(python, "-c", code))}
    acme = found["acme-net"]
    assert (acme["status"], acme["source"], acme["error"]) == ("ok", "cfproto-acme-net 0.1.0", "")
    assert acme["adapters"] == ["acme-net"]
    assert acme["module"] == "cfproto_acme_net.plugin"
    assert not acme["slow"]


@pytest.mark.install
def test_the_package_passes_its_own_tests_untouched(python, package):
    out = run(python, "-m", "pytest", "-rA", "-W", "error", "-p", "no:cacheprovider", cwd=package)
    assert "PASSED tests/test_plugin.py::test_the_plugin_conforms[the spec claims its own model]" in out
    assert "PASSED tests/test_plugin.py::test_the_plugin_conforms[loading imports no framework]" in out
    assert "PASSED tests/test_plugin.py::test_the_plugin_conforms[pullback agrees with random direction" in out
    assert "PASSED tests/test_plugin.py::test_a_model_is_explained" in out
    assert "skipped" not in out


@pytest.mark.install
def test_the_command_of_its_readme_checks_the_example(python, package):
    target = "tests.test_plugin:example"
    assert f"cfproto check {target}" in (package / "README.md").read_text()
    out = run(python, "-c", f"from cfproto_plugin.cli import main; main(['check', {target!r}])", cwd=package)
    model = "cfproto_acme_net.model.CentroidClassifier"
    assert out.splitlines()[0] == f"adapter 'acme-net' of plugin acme-net (cfproto-acme-net 0.1.0) for {model}"
    assert "failed" not in out


def test_what_is_written_is_clean(package):
    ruff = [sys.executable, "-m", "ruff"]
    run(*ruff, "format", "--check", package, cwd=package)
    run(*ruff, "check", package, cwd=package)
    run(*ruff, "check", "--config", ROOT / "pyproject.toml", "src", cwd=package)


def test_every_template_is_used_and_filled_in(package):
    templates = {path.name for path in (ROOT / "cfproto_plugin" / "cli" / "templates").iterdir()}
    assert templates == set(FILES)
    written = [path for path in package.rglob("*") if path.suffix in {".py", ".toml", ".md"}]
    assert len(written) == len(FILES)
    assert not [path for path in written if "$" in path.read_text(encoding="utf-8")]
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["cfproto_plugin"] == {"acme-net": "cfproto_acme_net.plugin"}


@pytest.mark.install
def test_the_templates_are_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel(ROOT)) as file:
        names = set(file.namelist())
    assert {f"cfproto_plugin/cli/templates/{name}" for name in FILES} <= names


def test_the_user_is_told_what_to_do_next(tmp_path):
    result = invoke("Acme.Net", "--directory", tmp_path)
    assert result.exit_code == 0
    first, *commands, last = result.output.splitlines()
    assert first == f"Wrote {tmp_path / 'acme-net'}: a plugin named 'acme-net' in the package acme_net. Next:"
    assert commands == [f"  cd {tmp_path / 'acme-net'}", "  pip install -e '.[test]'", "  pytest", "  cfproto plugins"]
    assert last == "Then put your model into src/acme_net/plugin.py; README.md says how."


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "acme-net").mkdir()
    result = invoke("acme-net", "--directory", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path / 'acme-net'} exists already; nothing was written." in result.output
    assert list((tmp_path / "acme-net").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_without_traceback(tmp_path):
    (tmp_path / "file").write_text("")
    result = invoke("acme-net", "--directory", tmp_path / "file" / "below")
    assert result.exit_code == 2
    assert "cannot be written" in result.output


@pytest.mark.parametrize(
    ("name", "wrong", "instead"),
    [
        ("acme net", "is no name of a package: letters a to z, digits", "cfproto-acme-net"),
        ("acme-", "is no name of a package", "cfproto-acme"),
        ("../acme", "is no name of a package", "cfproto-acme"),
        ("modèle", "is no name of a package", "cfproto-mod-le"),
        ("", "is no name of a package", "cfproto-acme"),
        ("3d", "gives the package '3d', which Python cannot import", "cfproto-3d"),
        ("class", "gives the package 'class', which Python cannot import", "cfproto-class"),
        ("json", "gives the package 'json', which is another that can be imported", "cfproto-json"),
        ("numpy", "gives the package 'numpy', which is another that can be imported", "cfproto-numpy"),
        ("cfproto-torch", "gives the plugin 'torch', and one of that name is installed (cfproto-plugin)", "my-torch"),
    ],
)
def test_a_name_that_cannot_be_used_says_why_and_what_to_use(tmp_path, name, wrong, instead):
    result = invoke("--directory", tmp_path, "--", name)
    assert result.exit_code == 2
    assert f"{name!r} {wrong}" in result.output
    assert f"{instead}'." in result.output.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []
