"""`cfproto explain`: saved models, tables, rules and what is written."""

import json
import pickle
import re
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost
from click.testing import CliRunner

from cfproto_plugin import AdapterSpec, Explanation, ModelFile, hookimpl, register, unregister
from cfproto_plugin.cli import main

FIXED = ["worst area", "worst concave points"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The Breast Cancer data as CSV, six rows to explain, and XGBoost models of it."""
    from sklearn.datasets import load_breast_cancer

    made = tmp_path_factory.mktemp("cancer")
    x, y = load_breast_cancer(as_frame=True, return_X_y=True)
    x.assign(target=y)[:450].to_csv(made / "train.csv", index=False)
    x[450:456].to_csv(made / "rows.csv", index=False)
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(x[:450], y[:450])
    model.save_model(made / "model.json")
    model.save_model(made / "model.ubj")
    matrix = xgboost.DMatrix(x[:450], y[:450])
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 10)
    booster.save_model(made / "booster.json")
    xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(x, y).save_model(made / "regressor.json")
    return made


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    """A table of text, numbers and booleans, and a scikit-learn pipeline of it."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    made, draw, n = tmp_path_factory.mktemp("loans"), np.random.default_rng(0), 400
    x = pd.DataFrame(
        {
            "age": draw.integers(18, 80, n),
            "job": draw.choice(["clerk", "nurse", "smith"], n),
            "zone": draw.choice(["1", "2", "3A"], n),
            "income": draw.normal(3000, 900, n).round(2),
            "owner": draw.random(n) < 0.4,
            "status": draw.choice(["single", "married"], n),
        }
    )
    y = np.where(x.income / 1000 + x.age / 40 + x.owner + (x.job == "nurse") > 5.3, "granted", "refused")
    encoder = make_column_transformer((OneHotEncoder(), ["job", "zone", "owner", "status"]), remainder="passthrough")
    model = make_pipeline(encoder, RandomForestClassifier(20, random_state=0)).fit(x, y)
    joblib.dump(model, made / "pipeline.joblib")
    (made / "pipeline.pkl").write_bytes(pickle.dumps(model))
    texts = dict.fromkeys(("job", "zone", "status"), "category")
    with_categories = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True, n_jobs=1)
    with_categories.fit(x.astype(texts), y == "granted").save_model(made / "categories.json")
    x.assign(decision=y)[:380].to_csv(made / "train.csv", index=False)
    x[x.zone != "3A"].tail(5).to_csv(made / "rows.csv", index=False)  # alone, the zones would be read as numbers
    return made


@pytest.fixture(scope="module")
def network(folder):
    """Weights that tell the cancer rows apart by two columns; the others are too different in size."""
    train = pd.read_csv(folder / "train.csv").drop(columns="target")
    weights = np.zeros((30, 2), dtype=np.float32)
    weights[[7, 27], 1] = -1 / train.iloc[:, [7, 27]].std()
    bias = np.array([0, -(train.to_numpy() @ weights[:, 1]).mean()], dtype=np.float32)
    return weights, bias


def explain(folder, model, *options, train="train.csv", rows="rows.csv", drop="target"):
    """Run the command on files of the folder; options that name a file begin with an @."""
    where = [str(folder / option[1:]) if option.startswith("@") else option for option in map(str, options)]
    tables = ["--train", str(folder / train), "--rows", str(folder / rows)]
    dropped = ["--drop", drop] if drop else []
    return CliRunner().invoke(main, ["explain", str(folder / model), *tables, *dropped, *where])


def refusal(result):
    """What was said; it must be an error of the input, without traceback."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def predicted(path, rows):
    model = xgboost.XGBClassifier()
    model.load_model(path)
    return model.predict(rows[model.feature_names_in_])


@pytest.mark.parametrize("model", ["model.json", "model.ubj", "booster.json"])
def test_xgboost_file_and_two_csv_files_give_counterfactuals_that_keep_immutable_columns(folder, tmp_path, model):
    rows = pd.read_csv(folder / "rows.csv")
    free, kept = tmp_path / "free.csv", tmp_path / "kept.csv"
    assert explain(folder, model, "--output", free).exit_code == 0
    result = explain(folder, model, "--output", kept, "--immutable", ",".join(FIXED))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"{kept}: 6 of 6 rows explained in ")
    found = pd.read_csv(kept)
    assert found.row.tolist() == list(range(6))
    assert set(found.status) == {"found"}
    pd.testing.assert_frame_equal(found[FIXED], rows[FIXED])
    assert (pd.read_csv(free)[FIXED] != rows[FIXED]).any(axis=None)
    before, after = (predicted(folder / model, table) for table in (rows, found))
    assert (before != after).all()
    assert found.original_class.tolist() == before.tolist()
    assert found.counterfactual_class.tolist() == after.tolist()


def test_columns_are_matched_by_name_and_written_in_the_order_of_the_rows(folder, tmp_path):
    for name in ("train.csv", "rows.csv"):
        table = pd.read_csv(folder / name)
        table[table.columns[::-1]].to_csv(tmp_path / name, index=False)
    train, rows = tmp_path / "train.csv", tmp_path / "rows.csv"
    assert explain(folder, "model.json", "--output", tmp_path / "a.csv").exit_code == 0
    assert explain(folder, "model.json", "--output", tmp_path / "b.csv", train=train, rows=rows).exit_code == 0
    a, b = pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv")
    assert b.columns.tolist()[11:] == a.columns.tolist()[:10:-1]
    pd.testing.assert_frame_equal(a, b[a.columns])


def test_changes_are_printed_as_one_aligned_table(folder):
    result = explain(folder, "model.json", "--limit", 2)
    table, said = result.stdout.strip("\n").split("\n\n")
    head, *lines = table.splitlines()
    assert [line.split(" Had ")[0] for line in said.splitlines()] == ["row 0:", "row 1:"]
    assert all(" instead of " in line and "the model would have said " in line for line in said.splitlines())
    assert head.split() == ["row", "class", "p", "feature", "before", "after"]
    first, second = (next(line for line in lines if line.startswith(f"  {row}  ")) for row in "01")
    assert first.split()[1:4] == ["1", "->", "0"]
    assert second.split()[1:4] == ["0", "->", "1"]
    assert {len(line.partition("  only for ")[0]) for line in lines} == {len(head)}
    assert result.stderr.startswith("2 of 2 rows explained in ")


def test_pipeline_over_text_and_numbers_is_explained_in_the_users_own_columns(loans, tmp_path):
    out = tmp_path / "out.csv"
    options = ("--increasing", "age", "--step", "income=50", "--allowed", "job=nurse,clerk", "--immutable", "owner")
    result = explain(loans, "pipeline.joblib", "--output", out, *options, drop="decision")
    assert result.exit_code == 0, result.output
    text = {"zone": str}
    found, rows = pd.read_csv(out, dtype=text), pd.read_csv(loans / "rows.csv", dtype=text)
    model = joblib.load(loans / "pipeline.joblib")
    counterfactual = found[rows.columns]
    assert model.predict(counterfactual).tolist() == found.counterfactual_class.tolist()
    assert (model.predict(counterfactual) != model.predict(rows)).all()
    assert (found.age >= rows.age).all()
    assert set(found.job) <= {"nurse", "clerk"}
    assert (found.owner == rows.owner).all()
    changed = found.income != rows.income
    assert changed.any()
    np.testing.assert_allclose(found.income[changed] % 50, 0)


def test_a_column_named_like_one_of_ours_keeps_its_name(loans, tmp_path):
    explain(loans, "pipeline.pkl", "--output", tmp_path / "out.csv", drop="decision")
    found = pd.read_csv(tmp_path / "out.csv")
    assert set(found.status) <= {"single", "married"}
    assert set(found.status_) == {"found"}


def test_targets_are_the_labels_of_the_model_whatever_their_type(folder, loans):
    words = json.loads(explain(loans, "pipeline.pkl", "--json", "--target", "granted", drop="decision").stdout)
    assert {line["counterfactual_class"] for line in words} == {"granted"}
    numbers = json.loads(explain(folder, "model.json", "--json", "--target", 0).stdout)
    assert {line["counterfactual_class"] for line in numbers} == {0}
    both = json.loads(explain(folder, "model.json", "--json", "--target", 0, "--target", 1).stdout)
    assert all(line["message"].startswith("already in the target") for line in both)


def test_json_has_one_object_per_counterfactual_and_null_for_what_is_missing(loans):
    result = explain(loans, "pipeline.joblib", "--json", "-n", 2, "--limit", 3, drop="decision")
    lines = json.loads(result.stdout)
    assert [line["row"] for line in lines] == [0, 0, 1, 1, 2, 2]
    rows = pd.read_csv(loans / "rows.csv", dtype={"zone": str}).to_dict("records")
    for line in lines:
        changed = {change["feature"]: change for change in line["changes"]}
        if line["counterfactual"] is None:
            assert (line["status"], line["proba_after"], changed) == ("not_found", None, {})
            continue
        for name, value in line["counterfactual"].items():
            before = rows[line["row"]][name]
            assert changed.get(name, {"before": value})["before"] == before
            assert value == changed.get(name, {"after": before})["after"]
    found = sum(line["counterfactual"] is not None for line in lines)
    assert f"3 of 3 rows explained by {found} counterfactuals" in result.stderr


def test_rows_that_are_in_the_target_already_are_not_counted_as_explained(folder):
    every = json.loads(explain(folder, "model.json", "--json").stdout)
    there = [line["original_class"] for line in every].count(1)
    assert 0 < there < len(every)
    result = explain(folder, "model.json", "--target", 1, "--class-names", "0=malignant,1=benign")
    assert result.stderr.startswith(f"{len(every) - there} of {len(every)} rows explained in ")
    assert f"; {there} rows already in the target (benign): nothing to change" in result.stderr
    one = explain(folder, "model.json", "--target", 0, "--target", 1, "--limit", 1, "-n", 3)
    assert one.stderr.startswith("1 row already in the target (")
    assert (result.exit_code, one.exit_code) == (0, 0)


def test_one_row_and_one_counterfactual_are_counted_as_one(folder):
    result = explain(folder, "model.json", "--limit", 1, "-n", 2, "--time-budget", 1e-9)
    assert "1 of 1 row explained by 1 counterfactual in " in result.stderr


def test_json_file_is_the_whole_explanation_and_html_a_report(folder, tmp_path):
    assert explain(folder, "model.json", "--output", tmp_path / "e.json").exit_code == 0
    explanation = Explanation.from_json((tmp_path / "e.json").read_text(encoding="utf-8"))
    assert (len(explanation), explanation.meta["adapter"]) == (6, "xgboost")
    assert explain(folder, "model.json", "--output", tmp_path / "e.html").exit_code == 0
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert len(json.loads(data)["lines"]) == 6
    assert "Counterfactuals of rows.csv" in page


def test_rules_and_settings_come_from_toml_and_flags_win(folder, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'immutable = ["worst area", "worst radius"]\nscale = "none"\n[ranges]\n"worst texture" = [0, 100]\n'
        "[search]\nmax_changes = 2\nbeta = 0.5\npolish = 1\n"
    )
    out = tmp_path / "out.json"
    options = ("--rules", rules, "--output", out, "--increasing", "worst radius", "--max-changes", 20)
    assert explain(folder, "model.json", *options, "--no-polish").exit_code == 0
    explanation = Explanation.from_json(out.read_text(encoding="utf-8"))
    config = explanation.meta["config"]
    assert (config["max_changes"], config["beta"], config["polish"]) == (20, 0.5, False)
    moved = explanation.delta
    assert (moved["worst area"] == 0).all()
    assert (moved["worst radius"] >= 0).all()
    assert (moved["worst radius"] > 0).any()  # the file alone would have kept it; the path moves nearly all


def test_rules_of_the_file_and_of_the_flags_both_hold(loans, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'immutable = ["owner"]\nranges = { age = [0, 30], income = [0, 9000] }\nallowed = { job = ["nurse"] }'
    )
    out = tmp_path / "out.csv"
    options = ("--rules", rules, "--immutable", "status", "--range", "age=50:", "--weight", "income=3", "-o", out)
    result = explain(loans, "pipeline.joblib", *options, drop="decision")
    found, rows = pd.read_csv(out), pd.read_csv(loans / "rows.csv")
    done = found.status_ == "found"
    assert done.any(), result.output
    assert (found.age[done] >= 50).all()
    assert (found.job[done] == "nurse").all()
    assert (found.owner[done].astype(bool) == rows.owner[done]).all()
    assert (found.status[done] == rows.status[done]).all()


def test_allowed_values_have_the_type_of_their_column(loans):
    result = explain(loans, "pipeline.joblib", "--json", "--allowed", "owner=True", drop="decision")
    lines = json.loads(result.stdout)
    assert {line["counterfactual"]["owner"] for line in lines if line["counterfactual"]} == {True}


def test_relations_between_columns_hold(loans):
    result = explain(loans, "pipeline.joblib", "--json", "--relation", "age >= 60", drop="decision")
    ages = [line["counterfactual"]["age"] for line in json.loads(result.stdout) if line["counterfactual"]]
    assert ages
    assert min(ages) >= 60


def test_only_the_columns_of_vary_change_and_a_flag_wins_over_the_file(loans, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('vary = ["age", "job"]\nimmutable = ["income"]\n')
    options = ("--rules", rules, "--vary", "income", "--immutable", "job", "--relation", "age + 0 <= 2*income")
    result = explain(loans, "pipeline.joblib", "--json", *options, drop="decision")
    changed = {change["feature"] for line in json.loads(result.stdout) for change in line["changes"]}
    assert changed == {"age", "income"}, result.output


def test_a_target_can_be_a_probability(loans):
    result = explain(loans, "pipeline.joblib", "--json", "--target", "granted:0.4..0.6", drop="decision")
    lines = [line for line in json.loads(result.stdout) if line["counterfactual"]]
    assert lines, result.output
    for line in lines:
        proba = line["proba_after"] if line["counterfactual_class"] == "granted" else 1 - line["proba_after"]
        assert 0.4 <= proba <= 0.6
    result = explain(loans, "pipeline.joblib", "--target", "granted:0.4..0.6", "--target", "refused", drop="decision")
    assert result.exit_code == 2
    assert "LABEL:LOW..HIGH for each of them" in result.stderr


def test_rows_without_a_counterfactual_give_status_1_and_their_reasons(folder, tmp_path):
    columns = pd.read_csv(folder / "rows.csv").columns
    result = explain(folder, "model.json", "--immutable", ",".join(columns), "--target", 0, "-o", tmp_path / "o.csv")
    assert result.exit_code == 1
    reasons, summary = result.stderr.splitlines()
    assert reasons.startswith("rows 0, 2, 3, 4, 5: infeasible: ")
    assert "0 of 6 rows explained" in summary
    assert "; 1 row already in the target (0): nothing to change" in summary
    found = pd.read_csv(tmp_path / "o.csv")
    assert found.status.tolist() == ["infeasible", "found", *["infeasible"] * 4]
    assert found["worst area"].notna().tolist() == [False, True, *[False] * 4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--immutable", "worst aera"), "Did you mean 'worst area'?"),
        (("--range", "worst area"), "expected such as age=17:90"),
        (("--range", "worst area=7"), "expected such as age=17:90"),
        (("--range", "worst area=a:7"), "'a' is not a number"),
        (("--range", "worst area=9:7"), "expected (lowest, highest)"),
        (("--weight", "worst area=0"), "expected a number from 1e-12"),
        (("--allowed", "worst area=1,low"), "'low' is not a number"),
        (("--target", "benign"), "Its classes are: 0, 1"),
        (("--preset", "nearest"), "'nearest' is not one of 'close', 'few', 'typical', 'stable'"),
        (("--min-stability", 3), "min_stability is 3.0; expected a share from 0 to 1"),
        (("--prototypes", "kdtre"), "Did you mean 'kdtree'?"),
        (("--adapter", "xgbost"), "Did you mean 'xgboost'?"),
        (("--time-budget", -1), "time_budget"),
        (("--drop", "worst"), "--drop worst: no table has such a column"),
        (("--drop", "worst area"), "lacks the column 'worst area', which the model has"),
        (("--output", "answers.doc"), "expected one of .csv, .csv.gz, .parquet, .json, .html"),
        (("--output", "no/such/folder/a.csv"), "there is no folder 'no/such/folder'"),
        (("--output", "@rows.csv"), "is also given as the rows"),
        (("--rules", "@rows.csv"), "is not TOML"),
        (("--n", 0), "--n"),
        (("--no-such",), "No such option"),
    ],
)
def test_options_that_cannot_be_used_are_refused_with_what_to_do(folder, options, said):
    assert said in refusal(explain(folder, "model.json", *options))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('imutable = ["sex"]', "there is no 'imutable'. Did you mean 'immutable'?"),
        ("[search]\nmax_change = 3", "[search]: there is no 'max_change'. Did you mean 'max_changes'?"),
        ('immutable = "sex"', "immutable is 'sex'; expected a list"),
        ("ranges = 3", "ranges is 3; expected a table"),
        ('[search]\npolish = "much"', "polish is 'much'; expected True or False"),
        ("[search]\npolish = 0.5", "polish is 0.5; expected True or False. How close"),
        ("[search]\nbeta = -1", "beta is -1"),
        ("ranges = { age = 3 }", "expected (lowest, highest)"),
    ],
)
def test_mistakes_in_the_rules_file_are_named(folder, tmp_path, text, said):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    assert said in refusal(explain(folder, "model.json", "--rules", path))


def test_extra_column_is_refused_and_the_option_that_drops_it_is_named(folder):
    said = refusal(explain(folder, "model.json", drop=None))
    assert "train.csv has the column 'target', which the model does not have" in said
    assert "--drop target" in said


@pytest.mark.needs("torch")
def test_columns_of_the_training_table_rule_where_the_model_names_none(folder, network, tmp_path):
    (tmp_path / "named.csv").write_text((folder / "rows.csv").read_text().replace("worst area", "worst_area"))
    save_torch(network, tmp_path / "net.pt")
    said = refusal(explain(folder, tmp_path / "net.pt", rows=tmp_path / "named.csv"))
    assert "lacks the column 'worst area', which" in said
    assert "If 'worst_area' is meant, rename it to 'worst area'." in said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.json", "{}", "is no model that XGBoost wrote"),
        ("model.joblib", "no pickle", "cannot be loaded as a model by sklearn"),
        ("model.pkl", "cno_such_module\nNet\n.", "The code of its classes must be installed"),
        ("model.onnx", "", "pass package.module:function"),
        ("model.txt", None, "there is no model file"),
        ("no_such_module:load", None, "cannot be imported"),
        ("json:laods", None, "Did you mean 'loads'?"),
        ("json:loads", None, "json:loads() failed: TypeError"),
    ],
)
def test_models_that_cannot_be_loaded_are_refused(folder, tmp_path, monkeypatch, name, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    result = CliRunner().invoke(
        main, ["explain", name, "--train", str(folder / "train.csv"), "--rows", str(folder / "rows.csv")]
    )
    message = refusal(result)
    assert said in message
    assert "Stack trace" not in message


def test_only_files_that_run_code_are_warned_about(folder, loans):
    said = explain(loans, "pipeline.joblib", drop="decision").stderr.splitlines()
    name = loans / "pipeline.joblib"
    assert said[0] == f"Warning: loading {name} runs code from the file; use only files you trust"
    assert "Warning" not in explain(folder, "model.json").stderr


@pytest.fixture
def registered():
    """Register plugins for the time of a test."""
    names = []

    def add(name, *adapters):
        register(SimpleNamespace(cfproto_adapters=hookimpl(named_hook(adapters))), name)
        names.append(name)

    yield add
    for name in names:
        unregister(name)


def named_hook(adapters):
    def cfproto_adapters():
        return adapters

    return cfproto_adapters


def threshold(path, *, model=None, trusted=()):
    """Read a model from a file: the column that decides, and where."""
    column, at = path.read_text().split()
    return lambda x: np.column_stack([x.iloc[:, int(column)] < float(at), x.iloc[:, int(column)] >= float(at)]) * 1.0


def test_plugin_brings_its_own_file_format(folder, tmp_path, registered):
    registered("acme", AdapterSpec("acme", ("acme:Net",), dict, files=(ModelFile((".acme",), threshold, safe=True),)))
    (tmp_path / "model.ACME").write_text("23 800.0")
    result = explain(folder, tmp_path / "model.ACME", "--json", "--limit", 2, "--preset", "close")
    assert result.exit_code == 0, result.output
    assert "Warning" not in result.stderr
    for line in json.loads(result.stdout):
        assert [change["feature"] for change in line["changes"]] == ["worst area"]


def test_file_that_two_plugins_read_is_refused_with_both_names(folder, registered):
    registered("rival", AdapterSpec("rival", ("rival:Net",), dict, files=(ModelFile((".json",), threshold),)))
    said = refusal(explain(folder, "model.json"))
    assert ".json files are read by xgboost (cfproto-plugin" in said
    assert "and rival (registered at run time)" in said


def test_a_regressor_is_refused(folder):
    assert "gives no classes" in refusal(explain(folder, "regressor.json"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.csv", "", "EmptyDataError"),
        ("rows.csv", 'a,b\n1,"2\n', "cannot be read"),
        ("rows.xlsx", "", "expected one of .csv, .csv.gz, .parquet"),
        ("rows.csv.gz", "not gzip", "cannot be read"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(folder, tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    message = refusal(explain(folder, "model.json", rows=tmp_path / name))
    assert said in message
    assert name in message


def test_a_category_the_training_table_had_not_is_named(loans, tmp_path):
    (tmp_path / "rows.csv").write_text((loans / "rows.csv").read_text().replace("nurse", "norse"))
    result = explain(loans, "pipeline.joblib", rows=tmp_path / "rows.csv", drop="decision")
    assert result.exit_code == 1
    assert "Did you mean 'nurse'?" in result.stderr


def test_text_columns_become_categories_for_a_model_that_wants_them(loans):
    said = refusal(explain(loans, "categories.json", drop="decision"))
    assert "name them with --categorical" in said
    assert "astype" not in said  # which is for those who call it from Python
    result = explain(loans, "categories.json", "--categorical", "job,zone,status", drop="decision")
    assert result.exit_code == 0, result.output


def test_compressed_tables_are_read_and_written(folder, tmp_path):
    pd.read_csv(folder / "rows.csv").to_csv(tmp_path / "rows.csv.gz", index=False)
    out = tmp_path / "out.csv.gz"
    assert explain(folder, "model.json", "--output", out, rows=tmp_path / "rows.csv.gz").exit_code == 0
    assert out.read_bytes()[:2] == b"\x1f\x8b"
    assert len(pd.read_csv(out)) == 6


def test_without_pyarrow_parquet_is_refused_before_the_work(folder, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for options in ({"rows": tmp_path / "rows.parquet"}, {"train": tmp_path / "train.parquet"}):
        next(iter(options.values())).touch()
        assert "pip install pyarrow" in refusal(explain(folder, "model.json", **options))
    assert "pip install pyarrow" in refusal(explain(folder, "no-such-model.json", "-o", tmp_path / "out.parquet"))


@pytest.mark.needs("pyarrow")
def test_parquet_is_read_and_written(loans, tmp_path):
    for name in ("train", "rows"):
        pd.read_csv(loans / f"{name}.csv", dtype={"zone": str}).to_parquet(tmp_path / f"{name}.parquet")
    a, b = tmp_path / "a.csv", tmp_path / "b.parquet"
    tables = {"train": tmp_path / "train.parquet", "rows": tmp_path / "rows.parquet"}
    assert explain(loans, "pipeline.joblib", "-o", a, drop="decision").exit_code == 0
    result = explain(loans, "pipeline.joblib", "-o", b, drop="decision", **tables)
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(pd.read_csv(a, dtype={"zone": str}), pd.read_parquet(b))


def test_without_pandas_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'cfproto-plugin[pandas]'" in refusal(explain(folder, "model.json"))


def test_without_its_framework_a_model_file_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert "pip install 'cfproto-plugin[xgboost]'" in refusal(explain(folder, "model.json"))


def torch_module(network):
    import torch

    weights, bias = network
    module = torch.nn.Sequential(torch.nn.Linear(30, 2))
    module.load_state_dict({"0.weight": torch.from_numpy(weights.T.copy()), "0.bias": torch.from_numpy(bias)})
    return module


def save_torch(network, path):
    import torch

    torch.save(torch_module(network), path)


def save_script(network, path):
    import torch

    torch.jit.script(torch_module(network)).save(path)


def save_exported(network, path):
    import torch

    rows = {0: torch.export.Dim("rows")}
    torch.export.save(torch.export.export(torch_module(network), (torch.zeros(2, 30),), dynamic_shapes=(rows,)), path)


def save_keras(network, path):
    import keras

    model = keras.Sequential([keras.Input((30,)), keras.layers.Dense(2, "softmax")])
    model.set_weights(list(network))
    model.save(path)


@pytest.mark.needs("torch", "keras")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize(
    ("save", "name"),
    [(save_torch, "net.pt"), (save_script, "net.pth"), (save_exported, "net.pt2"), (save_keras, "net.keras")],
)
def test_saved_networks_are_explained(folder, network, tmp_path, save, name):
    save(network, tmp_path / name)
    out = tmp_path / "out.csv"
    result = explain(folder, tmp_path / name, "--output", out, "--immutable", "worst area", "--limit", 3)
    assert result.exit_code == 0, result.output
    rows = pd.read_csv(folder / "rows.csv")[:3]
    found = pd.read_csv(out)
    weights, bias = network
    before, after = ((table[rows.columns].to_numpy() @ weights + bias).argmax(axis=1) for table in (rows, found))
    assert (before != after).all()
    assert found.counterfactual_class.tolist() == after.tolist()
    assert (found["worst area"] == rows["worst area"]).all()


@pytest.mark.needs("torch")
def test_weights_without_a_model_are_refused(folder, network, tmp_path):
    import torch

    torch.save(torch_module(network).state_dict(), tmp_path / "weights.pt")
    said = refusal(explain(folder, tmp_path / "weights.pt"))
    assert "holds a dictionary with '0.weight', '0.bias'" in said


def test_a_function_in_the_current_folder_gives_the_model_and_only_the_result_goes_to_standard_output(folder, tmp_path):
    (tmp_path / "mymodel.py").write_text(
        "import warnings, xgboost\n"
        "def load():\n"
        "    print('loading')\n"
        "    for _ in range(2):\n"
        "        warnings.warn('saved by\\n an older version', stacklevel=1)\n"
        f"    model = xgboost.XGBClassifier(); model.load_model({str(folder / 'model.json')!r})\n"
        "    return model\n"
    )
    tables = ["--train", str(folder / "train.csv"), "--rows", str(folder / "rows.csv"), "--drop", "target"]
    code = "from cfproto_plugin.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "explain", "mymodel:load", *tables, "--json", "--max-changes", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = json.loads(done.stdout)
    lost = [line["row"] for line in lines if line["counterfactual"] is None]
    assert done.returncode == (1 if lost else 0)
    assert all(len(line["changes"]) <= 1 for line in lines)
    said = done.stderr.splitlines()
    assert said[:2] == ["loading", "Warning: saved by an older version"]
    assert said[-1].startswith(f"{6 - len(lost)} of 6 rows explained in ")


def test_progress_is_shown_on_standard_error_when_asked_for(folder):
    result = explain(folder, "model.json", "--progress")
    assert "explaining" in result.stderr
    assert "explaining" not in result.stdout
    assert "explaining" not in explain(folder, "model.json", "--no-progress").stderr


def test_help_has_examples_and_says_what_the_exit_status_means():
    text = CliRunner().invoke(main, ["explain", "--help"]).output
    assert "cfproto explain model.json --train train.csv" in text
    assert "1  some rows have none" in text
    assert "run code when they are loaded" in " ".join(text.split())


def test_auto_takes_all_text_columns_for_native_categories(loans):
    named = explain(loans, "categories.json", "--categorical", "job,zone,status", "--json", drop="decision")
    found = explain(loans, "categories.json", "--categorical", "auto", "--json", drop="decision")
    assert found.exit_code == 0, found.output
    assert [line["counterfactual"] for line in json.loads(found.stdout)] == [
        line["counterfactual"] for line in json.loads(named.stdout)
    ]


def test_classes_are_called_by_their_names_and_stay_labels_in_data(folder):
    result = explain(folder, "model.json", "--limit", 2, "--class-names", "0=malignant,1=benign", "--target", "benign")
    assert "would have said benign" in result.stdout
    data = explain(
        folder, "model.json", "--limit", 1, "--class-names", "0=malignant", "--class-names", "1=benign", "--json"
    )
    (line,) = json.loads(data.stdout)
    assert {line["original_class"], line["counterfactual_class"]} == {0, 1}
    assert "expected LABEL=NAME" in refusal(explain(folder, "model.json", "--class-names", "good"))
    assert "which the model does not have" in refusal(explain(folder, "model.json", "--class-names", "7=good"))


def test_only_changes_are_written_where_that_is_asked_for(folder, tmp_path):
    output = tmp_path / "changes.csv"
    assert explain(folder, "model.json", "--limit", 3, "--only-changed", "--output", output).exit_code == 0
    table = pd.read_csv(output)
    assert table.columns.tolist()[-4:] == ["feature", "before", "after", "needed_for"]
    assert set(table["row"]) == {0, 1, 2}
    lines = json.loads(explain(folder, "model.json", "--limit", 3, "--only-changed", "--json").stdout)
    for line in lines:
        assert set(line["counterfactual"]) == {change["feature"] for change in line["changes"]}
        assert set(line["counterfactual"]) == set(table[table["row"] == line["row"]]["feature"])
    said = refusal(explain(folder, "model.json", "--only-changed", "--output", tmp_path / "report.html"))
    assert "--only-changed is for tables and --json" in said
