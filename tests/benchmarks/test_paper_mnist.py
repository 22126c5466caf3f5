"""The paper's MNIST experiments at toy size, on scikit-learn's digits blown up to 28 x 28."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.slow
PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"
NAMES = (
    "common",
    "store",
    "mnist_networks",
    "mnist_report",
    "mnist_rows",
    "mnist_searches",
    "mnist",
    "mnist_sweep",
    "mnist_black_box",
    "mnist_activations",
    "mnist_comparison",
    "mnist_encoder",
)


@pytest.fixture(scope="module")
def bench():
    """The scripts as modules, the way `python benchmarks/paper/mnist.py` finds them."""
    before = set(sys.modules)
    sys.path.insert(0, str(PAPER))
    yield type("Bench", (), {name: importlib.import_module(name) for name in NAMES})
    sys.path.remove(str(PAPER))
    for name in set(sys.modules) - before:
        if str(PAPER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def small_digits(split):
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    images = np.kron(x.reshape(-1, 8, 8) / 16 - 0.5, np.ones((3, 3)))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)), constant_values=-0.5)[..., None].astype(np.float32)
    half = slice(None, 1000) if split == "train" else slice(1000, None)
    return images[half], y[half]


@pytest.fixture(scope="module")
def places(bench, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(bench.mnist, "load_mnist", small_digits)
    patch.setattr(bench.mnist, "TIMED", 1)
    patch.setattr(bench.mnist, "STEPS_TIMED", 3)
    patch.setattr(bench.mnist_searches, "VALUES_OF_C", 5)
    yield bench.common.Places.under(tmp_path_factory.mktemp("mnist"))
    patch.undo()


@pytest.fixture
def size(bench):
    return bench.mnist_searches.Size(chunks=1, per_class=1, iterations=6, epochs=1)


@pytest.fixture
def experiment(bench, places, size):
    return bench.mnist.Experiment(size, bench.store.Store(places.cache))


def test_networks_have_the_shapes_of_the_paper(bench):
    nets = bench.mnist_networks
    x = torch.zeros(2, 28, 28, 1)
    model = nets.classifier().eval()
    assert nets.before_softmax(model)(x).shape == (2, 256)
    assert model(x).shape == (2, 10)
    assert nets.autoencoder().encoder(x).shape == (2, 14, 14, 1)
    assert nets.autoencoder()(x).shape == x.shape
    assert nets.small_autoencoder().encoder(x).shape == (2, 4, 4, 8)
    assert nets.small_autoencoder()(x).shape == x.shape


def test_a_network_gives_many_rows_at_once_what_it_gives_them_in_parts(bench):
    nets = bench.mnist_networks
    model = nets.classifier().eval()
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (nets.AT_ONCE + 3, 28, 28, 1)).astype(np.float32)
    np.testing.assert_allclose(nets.apply(model, x)[-3:], nets.apply(model, x[-3:]), atol=1e-6)


def test_chunks_hold_every_class_and_do_not_overlap(bench):
    labels = np.repeat(np.arange(10), 30)
    chunks = [bench.mnist_searches.rows_of_chunk(labels, number, bench.mnist_searches.Size()) for number in range(3)]
    assert all((np.bincount(labels[chunk]) == 5).all() for chunk in chunks)
    assert len(np.unique(np.concatenate(chunks))) == 150


def test_networks_of_other_seeds_get_the_same_images(bench):
    labels, size = np.repeat(np.arange(10), 30), bench.mnist_searches.Size.of(50, seed=2)
    assert (size.chunks, size.per_class) == (10, 5)
    one, two = (bench.mnist_searches.rows_of_chunk(labels, 0, replace(size, seed=seed)) for seed in (0, 2))
    np.testing.assert_array_equal(one, two)


def test_a_comparison_of_limited_time_ends_with_whole_chunks_goes_on_later_and_reports_all_of_them(
    bench, experiment, tmp_path, monkeypatch
):
    of = replace(experiment, store=bench.store.Store(tmp_path / "cache"), size=replace(experiment.size, chunks=3))
    for name in ("networks", "labels", "searches", "train", "test"):
        of.__dict__[name] = getattr(experiment, name)
    fitting, kept = bench.mnist_activations.fitting, bench.store.Store(tmp_path / "kept", compressed=True)
    first = fitting(of, kept, deadline=0.0)
    assert {part.images for part in first.values()} == {10 * of.size.per_class}
    whole = fitting(of, kept)
    assert {part.images for part in whole.values()} == {30 * of.size.per_class}

    def forbidden(*_args, **_kwargs):
        raise AssertionError

    monkeypatch.setattr(bench.mnist.Experiment, "find", forbidden)
    small = replace(of, size=replace(of.size, chunks=1))
    for name in ("networks", "labels", "searches", "train", "test"):
        small.__dict__[name] = getattr(experiment, name)
    again = fitting(small, bench.store.Store(tmp_path / "kept", compressed=True), deadline=0.0)
    for loss, part in again.items():
        np.testing.assert_array_equal(part.features, whole[loss].features)
        np.testing.assert_array_equal(part.label, whole[loss].label)
        assert len(part.proba) == len(part.label) >= len(first[loss].label)


def test_a_small_run_does_not_take_away_from_what_a_large_one_left_on_record(bench, tmp_path):
    rows, file = bench.mnist_rows, tmp_path / "rows.csv"
    rows.write(file, {"A": [{"image": np.arange(n), "seed": np.full(n, seed)} for seed, n in enumerate((150, 60))]})
    recorded, size = rows.Recorded.read(file), bench.mnist_searches.Size(chunks=2)
    assert recorded.seeds == 2
    assert [bench.mnist.chunks_of(size, recorded, seed) for seed in (0, 1, 2)] == [3, 2, 2]
    assert (rows.Recorded().seeds, bench.mnist.chunks_of(size, rows.Recorded(), 0)) == (0, 2)


def test_the_claims_are_shown_for_every_seed_alone(bench):
    report, rng = bench.mnist_report, np.random.default_rng(0)
    metrics = ("seconds", "n_steps", "im1", "im2", "im2_ink", "elastic_net", "alone_seconds")

    def part(loss, n, factor):
        scale = factor if loss == "C" else 1.0
        return {"image": np.arange(n), **{metric: scale * rng.uniform(0.9, 1.1, n) for metric in metrics}}

    lines = {loss: [part(loss, 30, 0.74), part(loss, 20, 1.5)] for loss in "ABCDEF"}
    title, _, table = report.by_seed(lines)
    (line,) = (line for line in table.splitlines() if line.startswith("| IM1 of C against A |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert title == "## By seed"
    assert (cells[3], cells[4], cells[6], cells[7]) == ("30", "holds", "20", "does not hold")
    assert not report.by_seed({loss: parts[:1] for loss, parts in lines.items()})
    assert report.drawn(lines["A"]).startswith("30 and 20 test images")


def test_the_steps_of_values_of_c_without_a_counterfactual_count(bench, experiment):
    searches, x = experiment.searches, experiment.test[0][:6]
    found = searches.solver(bench.mnist_searches.Setting("A", "A"))(np.arange(6), x)
    assert found.valid.any()
    number = np.log10(found.c[found.valid]).round().astype(int)
    steps = found.steps[found.valid]
    assert ((steps > number * 6) & (steps <= (number + 1) * 6)).all()
    assert number.max() > 0


def test_counterfactuals_have_the_class_they_claim(bench, experiment):
    of_losses = experiment.find(bench.mnist_searches.LOSSES)
    assert sum(found.valid.any() for found in of_losses.values()) >= 4
    for found in of_losses.values():
        good = found.valid
        if not good.any():
            continue
        said = bench.mnist_networks.apply(experiment.networks.classifier, found.x[good]).argmax(axis=1)
        np.testing.assert_array_equal(said, found.counterfactual_class[good])
        assert (said != found.original_class[good]).all()


def test_prototypes_are_fitted_once_on_all_images_and_k_changes_them(experiment):
    provider = experiment.searches.prototypes
    assert sum(map(len, provider.encodings_)) == len(experiment.train[0])
    assert provider.fit(experiment.train[0][:10], np.zeros(10)) is provider
    allowed = np.ones((1, len(provider.classes_)), dtype=bool)
    one, whole = (provider.with_k(k).nearest(experiment.test[0][:1], allowed)[0][0, 0] for k in (1, None))
    assert not np.allclose(one, whole)


def test_the_main_experiment_writes_its_files_and_goes_on_where_it_was(bench, places, size, monkeypatch):
    bench.mnist.main(places, size)
    page = (places.docs / "paper-mnist.md").read_text()
    assert "| A | " in page
    assert "| default, k-d tree | " in page
    assert "gradient steps of C against A" in page
    for picture in ("losses", "grid", "reconstructions", "figure-2"):
        assert places.picture(f"paper-mnist-{picture}.png").stat().st_size > 1000
    with (places.results / "mnist.csv").open() as file:
        names = {line["name"] for line in csv.DictReader(file)}
    assert {*"ABCDEF", "default, encoder", "A, no momentum", "D, all c", "A, reference"} <= names

    def forbidden(*_args, **_kwargs):
        raise AssertionError

    monkeypatch.setattr(bench.mnist.Searches, "solver", forbidden)
    bench.mnist.main(places, size)


def test_what_is_on_record_is_reported_again_without_a_network(bench, places, size, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.mnist_searches.Size, "is_full", True)
    monkeypatch.setattr(bench.mnist_black_box, "STEPS", 2)
    monkeypatch.setattr(bench.mnist_encoder, "ALONE", 3)
    scripts = {
        "mnist": lambda at: bench.mnist.main(at, size),
        "mnist-k": lambda at: bench.mnist_sweep.main(at, size),
        "mnist-black-box": lambda at: bench.mnist_black_box.main(at, size, steps=2, images=2),
        "mnist-encoder": lambda at: bench.mnist_encoder.main(at, replace(size, seed=2)),
    }
    for script in scripts.values():
        script(places)
    pages = {name: (places.docs / f"paper-{name}.md").read_text() for name in scripts}
    rows = {file: file.read_text() for file in places.results.glob("mnist*_rows.csv")}
    assert len(rows) == 3
    begun = (places.results / "mnist_k_starts.csv").read_text()
    clone = replace(places, cache=tmp_path)

    def forbidden(*_args, **_kwargs):
        raise AssertionError

    monkeypatch.setattr(bench.mnist_networks, "network", forbidden)
    for name, script in scripts.items():
        script(clone)
        assert (places.docs / f"paper-{name}.md").read_text() == pages[name]
    assert rows == {file: file.read_text() for file in rows}
    assert begun == (places.results / "mnist_k_starts.csv").read_text()
    with pytest.raises(AssertionError):
        bench.mnist.main(clone, size, fresh="defaults")
    for name, script in (("mnist_facts.json", scripts["mnist"]), ("mnist_encoder.json", scripts["mnist-encoder"])):
        known = json.loads((places.results / name).read_text())
        (places.results / name).write_text(json.dumps({**known, "defaults": {}}))
        with pytest.raises(AssertionError):
            script(clone)
    for fresh in (bench.mnist_sweep.main, bench.mnist_black_box.main, bench.mnist_encoder.main):
        with pytest.raises(AssertionError):
            fresh(clone, size, fresh=True)


def test_the_default_with_an_encoder_is_compared_with_losses_a_and_e(bench, places, size, monkeypatch):
    monkeypatch.setattr(bench.mnist_encoder, "ALONE", 3)
    bench.mnist_encoder.main(places, replace(size, seed=2))
    result = json.loads((places.results / "mnist_encoder.json").read_text())
    assert set(result["rows"]) == {"A", "E", "default, encoder", "min_confidence 0"}
    assert result["seconds"]["n"] == 3
    judged = [share for share in result["rows"]["default, encoder"]["judged"] if share is not None]
    assert set(judged) <= {0, 1}
    page = (places.docs / "paper-mnist-encoder.md").read_text()
    assert "| both judges agree | E | " in page
    assert places.picture("paper-mnist-encoder.png").stat().st_size > 1000


def test_the_curvature_of_a_quadratic_is_its_largest_eigenvalue(bench):
    weights = torch.tensor([1.0, 3.0, 2.0]).reshape(1, 3, 1, 1)
    found = bench.mnist.steepest(lambda y: (weights * y.square()).sum(), torch.zeros(2, 3, 1, 1))
    np.testing.assert_allclose(found, [6.0, 6.0], rtol=1e-4)


def test_the_sweep_of_k_writes_its_table(bench, places, size):
    bench.mnist_sweep.main(places, size)
    page = (places.docs / "paper-mnist-k.md").read_text()
    assert all(f"\n| {loss} | {k} | " in page for loss in "CDE" for k in ("2", "5", "20", "all"))


def test_a_black_box_is_asked_for_two_predictions_per_pixel_and_step(bench, places, size):
    bench.mnist_black_box.main(places, size, steps=2, images=2)
    with (places.results / "mnist_black_box.csv").open() as file:
        lines = {(line["name"], line["metric"]): float(line["mean"]) for line in csv.DictReader(file)}
    assert lines["A'", "predicted"] >= 2 * (2 * 784 + 1)
    assert lines["E", "predicted"] < 10 + 16  # sixteen rows that show whether the model is the same ride along
    assert "times faster" in (places.docs / "paper-mnist-black-box.md").read_text()


def test_the_comparison_rejects_what_does_not_fit(bench):
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 3))
    samples = {"good": rng.normal(size=(80, 3)), "bad": rng.normal(3, 1, size=(80, 3))}
    lines = bench.mnist_comparison.rates(samples, real, 60, 5, seed=0)
    rate = {(line["test"], line["loss"]): line for line in lines}
    for test in bench.mnist_comparison.TESTS:
        assert rate[test, "good"]["selected"] == 1
        assert rate[test, "bad"]["rejected"] == 1


def test_the_comparison_says_when_no_class_has_enough(bench, places, size):
    bench.mnist_comparison.main(places, size, fewest=1000)
    assert "No class has 1000" in (places.docs / "paper-mnist-comparison.md").read_text()
