"""The command line: listing plugins, the demonstration."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, version

import pytest
from click.testing import CliRunner

from cfproto_plugin.cli import breast_cancer as demo
from cfproto_plugin.cli import main, plugins
from cfproto_plugin.plugins import Registry


@pytest.fixture
def installed(monkeypatch):
    """Replace the installed plugins by those named."""

    def install(*entries, disabled=()):
        group = "cfproto_plugin"
        registry = Registry([EntryPoint(name, value, group) for name, value in entries], disabled)
        monkeypatch.setattr(plugins, "registry", lambda: registry)

    return install


def invoke(*arguments):
    return CliRunner().invoke(main, arguments)


def test_plugins_are_listed_in_columns_with_what_they_offer(installed):
    installed(("prototypes", "cfproto_plugin.prototypes"), ("d", "cfproto_plugin.distances"), disabled=["d"])
    result = invoke("plugins")
    first, second = result.output.splitlines()
    assert first.split()[:3] == ["prototypes", "ok", "cfproto_plugin.prototypes"]
    assert first.endswith("ms  prototypes: kdtree, encoder")
    assert second.split()[:2] == ["d", "disabled"]
    assert first.index("ok") == second.index("disabled")
    assert result.exit_code == 0


def test_a_broken_plugin_is_listed_with_its_cause_and_the_exit_status_is_1(installed):
    installed(("acme", "acme_missing.plugin"), ("prototypes", "cfproto_plugin.prototypes"))
    result = invoke("plugins")
    assert result.exit_code == 1
    broken, good = result.output.splitlines()
    assert broken.endswith("ModuleNotFoundError: No module named 'acme_missing'")
    assert " ok " in good


def test_plugins_as_json_say_the_same(installed):
    installed(("acme", "acme_missing.plugin"), ("prototypes", "cfproto_plugin.prototypes"))
    result = invoke("plugins", "--json")
    broken, good = json.loads(result.output)
    assert (broken["status"], broken["adapters"]) == ("broken", [])
    assert "acme_missing" in broken["error"]
    assert (good["name"], good["status"], good["error"]) == ("prototypes", "ok", "")
    assert good["prototypes"] == ["kdtree", "encoder"]
    assert good["seconds"] >= 0
    assert result.exit_code == 1


def test_suffixes_of_model_files_are_listed(installed):
    installed(("xgboost", "cfproto_adapters.xgboost_adapter"))
    assert invoke("plugins").output.rstrip().endswith("ms  adapters: xgboost; files: .json, .ubj")
    (record,) = json.loads(invoke("plugins", "--json").output)
    assert record["files"] == [".json", ".ubj"]


def test_every_plugin_of_this_package_loads():
    assert invoke("plugins").exit_code == 0


def test_listing_plugins_imports_no_framework_and_prints_only_the_table():
    code = (
        "import sys\n"
        "from cfproto_plugin.cli import main\n"
        "try:\n    main(['plugins'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'tensorflow', 'keras', 'xgboost', 'pandas', 'matplotlib'}\n"
        "print('imported:', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported: []"
    assert done.stderr == ""


def test_the_version_is_that_of_the_package():
    assert invoke("--version").output == f"cfproto, version {version('cfproto-plugin')}\n"


def test_the_demo_shows_confirmed_changes_and_writes_a_report(tmp_path):
    path = tmp_path / "report.html"
    result = invoke("demo", "--rows", "3", "--output", str(path))
    assert result.exit_code == 0, result.output
    assert "malignant (" in result.output
    assert "3 of 3 rows have a counterfactual, and the model confirms each." in result.output
    assert result.output.splitlines()[-1] == f"Report: {path}"
    (data,) = re.findall(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(json.loads(data)["lines"]) == 3


def test_the_demo_asks_the_model_and_would_notice_a_wrong_class(tmp_path):
    explanation = demo.run(2, tmp_path / "r.html", lambda _: None)

    class Contrary:
        def predict(self, x):
            return explanation.original_class

    with pytest.raises(ValueError, match=r"rows \[0, 1\]"):
        demo._verdict(Contrary(), explanation)


def test_without_pandas_the_demo_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = invoke("demo", "--output", str(tmp_path / "r.html"))
    assert result.exit_code == 1
    assert "pip install pandas" in result.output
    assert "Traceback" not in result.output


def test_a_report_that_cannot_be_written_is_an_error_without_traceback(tmp_path):
    result = invoke("demo", "--rows", "1", "--output", str(tmp_path / "no" / "such" / "folder" / "r.html"))
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("Error:")


def test_a_misspelt_name_of_a_blocked_plugin_is_pointed_out(installed, caplog):
    installed(("prototypes", "cfproto_plugin.prototypes"), disabled=["prototype"])
    result = invoke("plugins")
    assert "note: CFPROTO_DISABLE_PLUGINS names 'prototype'" in result.stderr
    assert "Did you mean 'prototypes'?" in result.stderr
    assert "Did you mean 'prototypes'?" in caplog.text
    assert (result.exit_code, result.stdout.split()[1]) == (0, "ok")
    assert json.loads(invoke("plugins", "--json").stdout)[0]["status"] == "ok"


def test_a_name_that_blocks_a_plugin_or_a_distribution_is_not_pointed_out(installed):
    installed(("prototypes", "cfproto_plugin.prototypes"), disabled=["prototypes"])
    assert "note" not in invoke("plugins").stderr


def test_a_name_that_is_blocked_is_separated_by_commas_and_blanks(tmp_path):
    code = "from cfproto_plugin.plugins import registry; print(registry().advice)"
    environment = {**os.environ, "CFPROTO_DISABLE_PLUGINS": " torch , ,kears"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.count("names") == 1
    assert "'kears'" in done.stdout


def test_the_demo_counts_one_row_as_one(tmp_path):
    result = invoke("demo", "--rows", "1", "--output", str(tmp_path / "r.html"))
    assert "1 of 1 row has a counterfactual, and the model confirms each." in result.output
