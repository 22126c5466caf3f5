"""The code on the pages runs from top to bottom as it stands, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import statistics
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scoring_server import free_port, scoring_server
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.cli import main
from cfproto_plugin.cli.rules import SEARCH, make_search, read_rules
from cfproto_plugin.features import Features

TOP = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"write-a-plugin.md", "hooks.md", "api.md"}  # run by tests/plugins, and made from the code
PAGES = sorted(path for path in (TOP / "docs").glob("*.md") if path.name not in ELSEWHERE)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def run(page, folder, monkeypatch, shell=None):
    """Run the blocks of a page in one namespace; a block of text is what the block before it prints.

    shell: is called with a block of shell commands.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    names, printed, ran = {"__name__": "__main__"}, "", 0
    for kind, text in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"{page.name}, block {ran + 1}", "exec"), names)  # noqa: S102 the code of the page
            printed, ran = out.getvalue(), ran + 1
        elif kind == "sh" and shell is not None:
            shell(text)
        elif kind == "text":
            assert printed.split() == text.split(), f"{page.name} prints:\n{printed}"
    return ran


def in_one_line(text):
    return " ".join(text.split())


def test_the_ten_lines_and_the_settings_of_the_readme_run(tmp_path, monkeypatch):
    assert run(TOP / "README.md", tmp_path, monkeypatch) == 2


@pytest.mark.parametrize(
    "name",
    [
        "index.md",
        "explanation.md",
        "rules.md",
        "proofs.md",
        "coming-from.md",
        pytest.param("files.md", marks=pytest.mark.needs("skops")),
        pytest.param("reports.md", marks=pytest.mark.needs("anywidget")),
        pytest.param("cohorts.md", marks=pytest.mark.needs("matplotlib")),
        pytest.param("pictures.md", marks=pytest.mark.needs("matplotlib")),
        pytest.param("serving.md", marks=pytest.mark.needs("xgboost")),
        pytest.param("datasets.md", marks=[pytest.mark.needs("xgboost"), pytest.mark.needs("pyarrow")]),
    ],
)
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    assert run(TOP / "docs" / name, tmp_path, monkeypatch) >= 1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.needs("xgboost")
@pytest.mark.needs("torch")
def test_the_code_of_the_page_on_adult_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    assert run(TOP / "docs" / "adult.md", tmp_path, monkeypatch) == 3


@pytest.mark.slow
@pytest.mark.needs("mlflow")
@pytest.mark.filterwarnings("ignore::Warning:mlflow.*")  # of MLflow's own code
def test_the_code_of_the_page_on_mlflow_runs_with_the_server_that_it_starts(tmp_path, monkeypatch):
    import mlflow

    before, port = mlflow.get_tracking_uri(), free_port()
    monkeypatch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)  # of another test's store
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID", raising=False)
    page = tmp_path / "mlflow.md"
    page.write_text((TOP / "docs" / "mlflow.md").read_text(encoding="utf-8").replace("5001", str(port)), "utf-8")
    with contextlib.ExitStack() as stack:

        def serve(command):
            setting, program, *arguments = shlex.split(command.partition(" --port")[0])
            assert program == "mlflow"
            stack.enter_context(scoring_server(arguments, port, tmp_path / "log", **dict([setting.split("=", 1)])))

        try:
            assert run(page, tmp_path, monkeypatch, serve) == 4
        finally:
            mlflow.set_tracking_uri(before)


@pytest.mark.slow
@pytest.mark.needs("shap", "captum", "torch", "matplotlib")
def test_the_code_of_the_page_on_shap_and_captum_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    try:
        assert run(TOP / "docs" / "shap-and-captum.md", tmp_path, monkeypatch) == 6
    finally:
        plt.close("all")


def test_no_page_has_code_that_is_not_run():
    ran = {
        "cohorts.md",
        "index.md",
        "explanation.md",
        "pictures.md",
        "rules.md",
        "files.md",
        "proofs.md",
        "reports.md",
        "adult.md",
        "command-line.md",
        "mlflow.md",
        "shap-and-captum.md",
        "coming-from.md",
        "serving.md",
        "datasets.md",
    }
    assert {page.name for page in PAGES if any(kind == "python" for kind, _ in blocks(page))} == ran
    for page in [*PAGES, TOP / "README.md"]:
        assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks(page)), page


def test_the_demo_says_what_the_readme_shows(tmp_path):
    shown = next(text for _, text in blocks(TOP / "README.md") if text.startswith("$ cfproto demo"))
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "r.html")])
    said = in_one_line(re.sub(r"\d+\.\d\d s", "0.00 s", result.stdout))
    for part in shown.partition("\n")[2].split("\n\n"):
        assert in_one_line(re.sub(r"\d+\.\d\d s", "0.00 s", part)) in said, result.stdout


def test_the_first_page_quotes_the_sentence_of_the_readme():
    shown = in_one_line(next(text for _, text in blocks(TOP / "README.md") if text.startswith("$ cfproto demo")))
    lines = (TOP / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    assert in_one_line(" ".join(line[1:] for line in lines if line.startswith(">"))) in shown


def test_the_page_on_the_result_quotes_the_probability_that_its_code_prints(tmp_path, monkeypatch):
    page = TOP / "docs" / "explanation.md"
    quoted = re.search(r"print\(e\.sentence\(3\)\)  # .*( is \d+ %\.)", page.read_text(encoding="utf-8"))
    first = next(text for kind, text in blocks(page) if kind == "python")
    names = {}
    exec(first, names)  # noqa: S102
    assert quoted is not None
    assert names["e"].sentence(3).endswith(quoted[1])


def test_the_rules_on_the_page_of_the_command_line_can_be_read(tmp_path):
    (text,) = (text for kind, text in blocks(TOP / "docs" / "command-line.md") if kind == "toml")
    (tmp_path / "rules.toml").write_text(text, encoding="utf-8")
    rules, search = read_rules(tmp_path / "rules.toml")
    assert Features(**rules).immutable == ("sex", "race")
    flags = dict.fromkeys((*SEARCH, "preset"))
    assert make_search(search, flags).max_changes == 3


def test_the_example_of_a_check_on_the_page_of_the_command_line_passes(tmp_path, monkeypatch):
    (text,) = (text for kind, text in blocks(TOP / "docs" / "command-line.md") if kind == "python")
    (tmp_path / text.split()[1]).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = CliRunner().invoke(main, ["check", "my_models:forest"])
    sys.modules.pop("my_models", None)
    assert result.exit_code == 0, result.output


def test_rules_bind_the_cells_that_the_page_on_tables_says():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"colour": rng.choice(["r", "g", "b"], 200), "age": rng.integers(18, 80, 200)})
    x["income"] = 3000.5 + 10 * rng.integers(-40, 40, 200)
    x.loc[:4, "colour"], x.loc[:9, "income"] = None, np.nan
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["colour"]), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingClassifier(random_state=0)).fit(x, x["age"] > 45)

    def answers(**rules):
        e = CounterfactualExplainer(model, features=Features(**rules)).fit(x).explain(x[:40])
        assert e.found.all(), e.message
        return e.counterfactual

    assert set(answers(allowed={"colour": ("r", "g")})["colour"]) == {"r", "g"}
    assert answers(allowed={"colour": ("r", "g", None)})["colour"].isna().any()
    assert (answers(relations="income >= 3100")["income"] >= 3100).all()  # no missing cell either
    ranged = answers(ranges={"income": (2900, 3100)})["income"]
    assert ranged.dropna().between(2900, 3100).all()
    assert ranged.isna().any()
    stepped = answers(step={"income": 100}, integer=("income",))["income"]
    kept = stepped.eq(x["income"][:40])
    assert kept.any()
    assert (stepped[~kept].dropna() % 100 == 0).all()


def results(name):
    return json.loads((TOP / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["lines"]


def test_times_against_the_reference_in_the_readme_are_those_of_the_committed_run():
    readme = in_one_line((TOP / "README.md").read_text(encoding="utf-8"))
    batch, rows = (
        [f"{line[f'{kind}_ratio_median']:.0f}" for line in results("reference")] for kind in ("batch", "row")
    )
    assert f"as a batch {batch[0]}, {batch[1]} and {batch[2]} times faster" in readme
    assert f"row by row, as the reference runs, {rows[0]}, {rows[1]} and {rows[2]} times" in readme


def peers():
    return {(line["data"], line["model"], line["method"]): line for line in results("peers") if "error" not in line}


def solved(line, field, of):
    return of([value for value in line[field] if value is not None])


def in_words(name, line):
    """What the README says of a method: its mean time, its median distance, and how many rows it had time for."""
    ms, distance = solved(line, "cpu", statistics.mean), solved(line, "en", statistics.median)
    time = f"{ms / 1000:.2g} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
    rows = len(line["valid"])
    return f"{name} {time}, {distance:.2g}" + ("" if rows == line["of"] else f" ({rows} rows)")


@pytest.mark.parametrize("model", ["xgboost", "forest"])
def test_every_peer_in_the_readme_is_a_line_of_the_committed_comparison(model):
    readme, found = in_one_line((TOP / "README.md").read_text(encoding="utf-8")), peers()
    names = {"`close()`": "ours, close", "the same on the plain function": "ours, close, function"}
    names |= {name: name for name in ("NICE proximity", "treecf", "DiCE random")} | {"alibi": "alibi L1+L2+proto"}
    asked = {name: found.get(("breast_cancer", model, method)) for name, method in names.items()}
    assert "; ".join(in_words(name, line) for name, line in asked.items() if line is not None) in readme


def test_calls_and_closeness_in_the_readme_are_those_of_the_committed_comparison():
    readme, found = in_one_line((TOP / "README.md").read_text(encoding="utf-8")), peers()

    def calls(model):
        rows = [line["calls"] for (_, kind, method), line in found.items() if method == "ours, close" and kind == model]
        return f"{min(map(min, rows))} to {max(map(max, rows))}"

    def closeness(method):
        real = {key[:2]: solved(line, "nn5", statistics.median) for key, line in found.items() if key[2] == "NICE none"}
        here = {key[:2]: solved(line, "nn5", statistics.median) for key, line in found.items() if key[2] == method}
        ratios = [here[key] / real[key] for key in real]
        return f"{min(ratios):.1f} to {max(ratios):.1f} times"

    assert f"takes {calls('xgboost')} of XGBoost and {calls('forest')} of a random forest" in readme
    assert f"class is {closeness('ours')} that of the nearest real row" in readme
    assert f"With `close()` it is {closeness('ours, close')}, with `typical()` {closeness('ours, typical')} (" in readme


def test_the_breadth_in_the_readme_is_that_of_the_committed_comparison():
    readme = in_one_line((TOP / "README.md").read_text(encoding="utf-8"))
    result = json.loads((TOP / "benchmarks" / "results" / "breadth.json").read_text(encoding="utf-8"))
    group = result["groups"][0]
    chosen = {tuple(case) for case in group["cases"]}
    lines = [line for line in result["lines"] if (line["data"], line["model"]) in chosen]

    def rank(measure, tool):
        known = group["measures"][measure]
        return f"{dict(zip(known['tools'], known['ranks'], strict=True))[tool]:.1f}"

    def over_cases(tool, field, of=statistics.median):
        return of([line[field] for line in lines if line["method"] == tool])

    def ranks(measure, *tools):
        return ", ".join(f"{name} {rank(measure, tool)}" for name, tool in tools)

    presets = ("ours", "ours, close", "ours, few", "ours, typical", "ours, stable")
    every = [line for line in lines if line["method"] in presets]
    covered = f"{sum(line['solved'] for line in every)} of {sum(line['of'] for line in every)}"
    tables = len({data for data, _ in chosen})
    assert f"{tables} tables, {len(chosen)} models, 50 rows each" in readme
    assert f"the default and the four presets answer {covered} rows" in readme
    for measure, tools in (
        ("en", (("`close()`", "ours, close"), ("NICE proximity", "NICE proximity"))),
        ("l0", (("`few()`", "ours, few"), ("NICE sparsity", "NICE sparsity"))),
        ("survival", (("the default", "ours"), ("NICE proximity", "NICE proximity"))),
    ):
        assert ranks(measure, *tools) in readme
    for mine, tool, peer in (("`close()`", "ours, close", "NICE proximity"), ("`few()`", "ours, few", "NICE sparsity")):
        assert f"{mine} {over_cases(tool, 'cpu'):.2g} ms, {peer} {over_cases(peer, 'cpu'):.2g} ms" in readme
    fifty = (
        f"{mine} {over_cases(tool, 'fifty'):.2g} ms"
        for mine, tool in (("`close()`", "ours, close"), ("`few()`", "ours, few"))
    )
    assert f"in a call of fifty, which NICE does not have: {', '.join(fifty)}" in readme
    for field, text in (("en", "distance {:.1f} and {:.1f}"), ("l0", "changed columns {:.1f} and {:.1f}")):
        assert text.format(over_cases("ours", field), over_cases("NICE proximity", field)) in readme


def test_agreement_of_refits_in_the_readme_is_that_of_the_committed_splits():
    readme = in_one_line((TOP / "README.md").read_text(encoding="utf-8"))
    splits = json.loads((TOP / "benchmarks" / "results" / "answers_splits.json").read_text(encoding="utf-8"))["splits"]

    def middle(kind, tool, measure, of):
        parts = [each[tool][measure] for name, each in splits.items() if name.startswith(f"breast_cancer-{kind}")]
        return of([value for part in parts for value in part])

    kinds = ("xgboost", "forest")
    mine, nice = (
        [round(100 * middle(kind, tool, "survival", np.mean)) for kind in kinds]
        for tool in ("default", "NICE proximity")
    )
    far = [middle(kind, "default", "en", np.median) / middle(kind, "NICE proximity", "en", np.median) for kind in kinds]
    assert f"{mine[0]} % (XGBoost) and {mine[1]} % (forest) of ten refitted models agree" in readme
    assert f"those of NICE proximity {nice[0]} and {nice[1]} %, at {far[0]:.1f} and {far[1]:.1f} times" in readme


def test_the_page_on_settings_shows_the_committed_presets():
    page = (TOP / "docs" / "settings.md").read_text(encoding="utf-8")
    for line in results("presets"):
        cells = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in line.values()]
        assert f"| {' | '.join(cells)} |" in page
