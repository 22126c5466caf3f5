"""The loaders of Adult and MNIST: the folder first, then OpenML, else an error that names both ways."""

from __future__ import annotations

import gzip
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from cfproto_plugin.datasets import load_adult, load_mnist
from cfproto_plugin.errors import InputError

HEADER = "age,workclass,income,split"
COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder named by CFPROTO_DATA, and no network."""
    monkeypatch.setenv("CFPROTO_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def openml(monkeypatch):
    """OpenML as a function of the test's choice; returns the calls made."""
    calls = []

    def answer_with(result):
        def fetch(name, **options):
            calls.append((name, options["version"], options["as_frame"]))
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        return calls

    return answer_with


def adult_of_openml():
    data = pd.DataFrame({"age": [25, 38, 28], "workclass": pd.Categorical(["Private", None, "Local-gov"])})
    return SimpleNamespace(data=data, target=pd.Series(["<=50K", ">50K", "<=50K"], dtype="category", name="class"))


def mnist_of_openml():
    data = np.zeros((60_003, 784), np.uint8)
    data[60_000:, 0] = 255
    return SimpleNamespace(data=data, target=np.array(["3"] * 60_000 + ["7", "8", "9"]))


def write_adult(path):
    rows = "39,State-gov,<=50K,train\n50,?,>50K,test\n38,Private,<=50K,train\n"
    with gzip.open(path / "adult.csv.gz", "wt", encoding="utf-8") as file:
        file.write(f"{HEADER}\n{rows}")


# The real files


@pytest.mark.data
@pytest.mark.parametrize(("split", "n"), [(None, 48842), ("train", 32561), ("test", 16281)])
def test_adult_has_the_published_rows_and_fourteen_raw_columns(split, n):
    x, y = load_adult(split=split)
    assert list(x.columns) == COLUMNS
    assert len(x) == len(y) == n
    assert set(y) == {"<=50K", ">50K"}
    assert x["age"].dtype == np.int64
    assert x.index.equals(pd.RangeIndex(n))
    assert x.index.equals(y.index)


@pytest.mark.data
def test_complete_training_rows_of_adult_are_those_of_the_golden_numbers():
    x, _ = load_adult(split="train")
    assert not x.isna().any().any()
    assert int((x != "?").all(axis=1).sum()) == 30162


@pytest.mark.data
@pytest.mark.parametrize(("split", "n"), [("train", 60000), ("test", 10000)])
def test_mnist_is_scaled_as_in_the_paper(split, n):
    images, labels = load_mnist(split)
    assert images.shape == (n, 28, 28, 1)
    assert images.dtype == np.float32
    assert (images.min(), images.max()) == (-0.5, 0.5)
    assert labels.shape == (n,)
    assert labels.dtype == np.int64
    assert set(labels.tolist()) == set(range(10))


# The folder


def test_the_folder_is_asked_before_openml(folder, openml):
    calls = openml(URLError("no network"))
    write_adult(folder)
    x, y = load_adult()
    assert x["workclass"].tolist() == ["State-gov", "?", "Private"]
    assert y.tolist() == ["<=50K", ">50K", "<=50K"]
    assert y.name == "income"
    assert calls == []


def test_a_split_is_numbered_from_zero(folder):
    write_adult(folder)
    x, y = load_adult(split="test")
    assert x.to_dict("list") == {"age": [50], "workclass": ["?"]}
    assert x.index.tolist() == y.index.tolist() == [0]


def test_mnist_of_the_folder_takes_the_split_asked_for(folder):
    images = {"x_train": np.zeros((2, 28, 28), np.uint8), "x_test": np.full((1, 28, 28), 255, np.uint8)}
    np.savez(folder / "mnist.npz", **images, y_train=np.uint8([1, 2]), y_test=np.uint8([3]))
    images, labels = load_mnist("test")
    assert np.all(images == 0.5)
    assert labels.tolist() == [3]


# OpenML


def test_adult_of_openml_looks_like_the_file(folder, openml):
    calls = openml(adult_of_openml())
    x, y = load_adult()
    assert calls == [("adult", 2, True)]
    assert x["workclass"].tolist() == ["Private", "?", "Local-gov"]
    assert not isinstance(x["workclass"].dtype, pd.CategoricalDtype)
    assert x["age"].dtype == np.int64
    write_adult(folder)
    assert x.dtypes.to_dict() == load_adult()[0].dtypes.to_dict()
    assert (y.name, y.tolist()) == ("income", ["<=50K", ">50K", "<=50K"])


@pytest.mark.parametrize(("split", "expected", "pixel"), [("test", [7, 8, 9], 0.5), ("train", [3] * 60_000, -0.5)])
def test_mnist_of_openml_is_split_after_sixty_thousand(folder, openml, split, expected, pixel):
    calls = openml(mnist_of_openml())
    images, labels = load_mnist(split)
    assert calls == [("mnist_784", 1, False)]
    assert labels.tolist() == expected
    assert images.shape == (len(expected), 28, 28, 1)
    assert np.all(images[:, 0, 0, 0] == pixel)


def test_openml_is_asked_without_a_folder(monkeypatch, openml):
    monkeypatch.delenv("CFPROTO_DATA", raising=False)
    openml(adult_of_openml())
    assert len(load_adult()[0]) == 3


def test_a_split_that_openml_does_not_have_is_an_error(folder, openml):
    calls = openml(adult_of_openml())
    with pytest.raises(InputError, match=r"no published split.*\n.*adult\.csv\.gz in CFPROTO_DATA"):
        load_adult(split="train")
    assert calls == []


# Neither


@pytest.mark.parametrize(("load", "file"), [(load_adult, "adult.csv.gz"), (load_mnist, "mnist.npz")])
def test_without_folder_and_network_the_error_says_both_ways(monkeypatch, openml, load, file):
    monkeypatch.delenv("CFPROTO_DATA", raising=False)
    openml(URLError("no route to host"))
    with pytest.raises(InputError) as caught:
        load()
    message = str(caught.value)
    assert "CFPROTO_DATA is not set" in message
    assert "no route to host" in message
    assert f"folder that holds {file}" in message
    assert "connect once" in message


def test_a_folder_without_the_file_is_named(folder, openml):
    openml(URLError("no route to host"))
    with pytest.raises(InputError, match=r"which holds no mnist\.npz") as caught:
        load_mnist()
    assert repr(str(folder)) in str(caught.value)


@pytest.mark.parametrize("load", [load_adult, load_mnist])
def test_a_split_that_does_not_exist_is_an_error(load):
    with pytest.raises(InputError, match=r"split is 'tests'.*Did you mean 'test'"):
        load(split="tests")
