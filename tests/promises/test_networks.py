"""Networks take the frames that other models take, and their output is read as what it is."""

from __future__ import annotations

import numpy as np
import pytest
from networks import in_keras, in_torch

from cfproto_plugin import CounterfactualExplainer, SearchConfig, adapt
from cfproto_plugin.errors import ModelError

N = 120
RNG = np.random.default_rng(0)
TRUTH, WHOLE, NUMBER = RNG.random(N) < 0.5, RNG.integers(0, 5, N), RNG.normal(size=N)
LAYERS = [(np.array([[0.3, -0.3], [2.0, -2.0]], dtype=np.float32), np.zeros(2, dtype=np.float32))]


def frame(kind):
    import pandas as pd

    if kind == "bool":
        return pd.DataFrame({"a": TRUTH, "b": NUMBER})
    if kind == "category, Int64":
        return pd.DataFrame({"a": pd.Categorical(TRUTH.astype(int)), "b": pd.array(WHOLE - 2, dtype="Int64")})
    return pd.DataFrame({"a": pd.Categorical(TRUTH.astype(int)), "b": pd.array(NUMBER, dtype="Float64")})


@pytest.mark.needs("pandas", "torch")
@pytest.mark.parametrize("kind", ["bool", "category, Int64", "category, Float64"])
def test_a_torch_network_takes_frames_of_truths_and_categories(kind):
    x = frame(kind)
    e = CounterfactualExplainer(in_torch(LAYERS, softmax=False)).fit(x).explain(x[:5])
    assert e.found.all()
    assert (e.counterfactual.dtypes == x.dtypes).all()


@pytest.mark.needs("pandas", "keras")
@pytest.mark.slow
def test_a_keras_network_takes_a_frame_with_truths():
    x = frame("bool")
    assert CounterfactualExplainer(in_keras(LAYERS)).fit(x).explain(x[:5]).found.all()


@pytest.mark.needs("torch")
def test_a_network_that_returns_percentages_is_refused():
    import torch

    class Percentages(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = in_torch(LAYERS)

        def forward(self, x):
            return 100 * self.inner(x)

    x = np.column_stack([TRUTH, NUMBER]).astype(np.float32)
    with pytest.raises(ModelError, match=r"sums to 100.*output=\"logits\""):
        CounterfactualExplainer(Percentages()).fit(x)
    assert CounterfactualExplainer(adapt(Percentages(), output="logits")).fit(x).explain(x[:2]).found.all()


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_module_that_casts_float32_rows_itself_is_asked_with_float32_rows(dtype):
    import torch

    mean = np.array([500.0, 0.0], dtype=np.float32)

    class Casting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = in_torch(LAYERS, softmax=False).to(getattr(torch, dtype))
            self.register_buffer("mean", torch.from_numpy(mean))

        def forward(self, x):
            return self.inner((x - self.mean).to(getattr(torch, dtype))).float()

    model = Casting()
    x = (mean + RNG.normal(size=(N, 2))).astype(np.float32)
    e = CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).explain(x[:40])
    assert e.found.all()
    with torch.no_grad():
        said = model(torch.tensor(e.counterfactual)).softmax(dim=1).numpy()
        alone = [int(model(torch.tensor(row[None])).argmax()) for row in e.counterfactual]
    assert said.argmax(axis=1).tolist() == alone == e.counterfactual_class.tolist()
    np.testing.assert_allclose(e.counterfactual_proba, said, atol=1e-6)
