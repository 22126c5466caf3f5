"""Names for classes: texts, reports and pictures show them, data keeps the labels of the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.errors import ConfigError, InputError

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["age", "debt", "income"])
MODEL = LogisticRegression().fit(ROWS, (ROWS["income"] > ROWS["debt"]).astype(int))
NAMES = {0: "refused", 1: "granted"}


@pytest.fixture(scope="module")
def explainer():
    return CounterfactualExplainer(MODEL, class_names=NAMES).fit(ROWS)


@pytest.fixture(scope="module")
def answers(explainer):
    return explainer.explain(ROWS[:20], progress=False)


def test_texts_reports_and_summaries_show_the_names(answers):
    line = answers[int(np.flatnonzero(answers.original_class == 0)[0])]
    assert "the model would have said granted" in line.sentence()
    for text in (repr(line), line._repr_html_(), line.to_html(), repr(answers)):
        assert "refused" in text
        assert "granted" in text
    assert "class granted reached" in line.message[0]
    assert {record.value for record in answers.summary().groups if record.group == "class"} == {"refused", "granted"}
    assert "to granted" in repr(answers.actions(k=1, target=1))


def test_data_keeps_the_labels(answers):
    assert set(answers.counterfactual_class) <= {0, 1}
    assert set(answers.to_frame()["original_class"]) <= {0, 1}
    assert answers.classes.tolist() == [0, 1]
    assert answers.class_names == ("refused", "granted")
    assert all(how.prototype_class in {0, 1} for how in answers.how)


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("kind", ["changes", "path"])
def test_pictures_show_the_names(answers, kind):
    from matplotlib.text import Text

    texts = " ".join(text.get_text() for text in answers[0].plot(kind).findobj(Text))
    assert "granted" in texts


def test_they_stay_in_files_and_slices(answers, explainer, tmp_path):
    assert Explanation.from_json(answers.to_json()).class_names == ("refused", "granted")
    assert answers[:2].class_names == ("refused", "granted")
    explainer.save(tmp_path / "explainer.zip", model="reference")
    back = CounterfactualExplainer.load(tmp_path / "explainer.zip", MODEL)
    assert back.explain(ROWS[:1]).class_names == ("refused", "granted")
    assert "refused" in back.explain(ROWS[:1]).sentence()


def test_a_list_names_the_classes_in_their_order_and_a_dict_may_leave_some_out():
    listed = CounterfactualExplainer(MODEL, class_names=["refused", "granted"]).fit(ROWS)
    assert listed.explain(ROWS[:1]).class_names == ("refused", "granted")
    some = CounterfactualExplainer(MODEL, class_names={"1": "granted"}).fit(ROWS)
    assert some.explain(ROWS[:1]).class_names == ("0", "granted")


@pytest.mark.parametrize("target", ["granted", ["granted"], ("granted",), {"granted"}, {"granted": (0.6, 1.0)}])
def test_a_target_may_be_given_by_name(explainer, target):
    rows = ROWS[MODEL.predict(ROWS) == 0][:5]
    e = explainer.explain(rows, target=target)
    assert set(e.counterfactual_class) == {1}


@pytest.mark.parametrize("wrap", [np.array, pd.Series])
def test_a_target_per_row_may_be_given_by_name(explainer, wrap):
    named = wrap(["granted", "refused", "granted"])
    e = explainer.explain(ROWS[:3].reset_index(drop=True), target=named)
    assert e.counterfactual_class.tolist() == [1, 0, 1]


def test_a_label_that_is_a_name_too_stays_that_label():
    model = LogisticRegression().fit(ROWS, np.where(ROWS["income"] > 0, "a", "b"))
    explainer = CounterfactualExplainer(model, class_names={"a": "b", "b": "a"}).fit(ROWS)
    assert set(explainer.explain(ROWS[:5], target="a").counterfactual_class) == {"a"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("refused", "expected a dict of label to name"),
        (3, "expected a dict of label to name"),
        ({0: ""}, "not empty"),
        ({0: 5}, "the name 5"),
        (["a", "a"], "to two classes"),
    ],
)
def test_what_are_no_names_is_refused_at_once(names, said):
    with pytest.raises(ConfigError, match=said):
        CounterfactualExplainer(MODEL, class_names=names)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "b", "c"], "3 names, and the model has 2 classes: 0, 1"),
        ({2: "maybe"}, "the class 2, which the model does not have. Its classes are: 0, 1"),
        ({0: "1"}, "'1' stand for two classes"),
    ],
)
def test_names_that_do_not_fit_the_model_are_refused_at_fit(names, said):
    with pytest.raises(ConfigError, match=said):
        CounterfactualExplainer(MODEL, class_names=names).fit(ROWS)


def test_a_row_without_an_answer_is_told_by_name(explainer):
    row = ROWS[MODEL.predict(ROWS) == 0][:1]
    e = explainer.explain(row, target="granted", features=Features(vary="age", ranges={"age": (-1, 1)}))
    assert "class granted" in e.message[0]
    with pytest.raises(InputError, match="not a class of the model"):
        explainer.explain(row, target="grantd")


@pytest.mark.parametrize("target", ["1", ["1"], 1, "granted"])
def test_a_label_may_be_a_text_in_a_target_as_it_may_in_the_names(target):
    explainer = CounterfactualExplainer(MODEL, class_names={"0": "refused", "1": "granted"}).fit(ROWS)
    e = explainer.explain(ROWS[MODEL.predict(ROWS) == 0][:2], target=target)
    assert set(e.counterfactual_class) == {1}


def test_a_name_that_reads_as_the_label_of_another_class_stays_that_name():
    explainer = CounterfactualExplainer(MODEL, class_names={0: "1", 1: "0"}).fit(ROWS)
    e = explainer.explain(ROWS[MODEL.predict(ROWS) == 0][:2], target="0")
    assert set(e.counterfactual_class) == {1}


def test_the_sentence_of_several_lines_is_one_for_each(answers):
    sentences = answers[:3].sentence().splitlines()
    assert sentences == [answers.sentence(line) for line in range(3)]
    assert answers[[2]].sentence() == sentences[2]


@pytest.mark.parametrize(
    "wrap", [str, lambda text: [text], lambda text: {text: (0.6, 1)}, lambda text: np.array([text])]
)
@pytest.mark.parametrize("text", ["grantd", "Granted", "grant"])
def test_a_target_that_is_no_class_is_told_the_names(explainer, text, wrap):
    said = r"is not a class of the model. Did you mean 'granted'\? Its .*: 'refused' \(0\), 'granted' \(1\)"
    with pytest.raises(InputError, match=said):
        explainer.explain(ROWS[:1], target=wrap(text))
