"""
# A black box: any function

No gradient, no library: a function from rows to probabilities is a model. It may be a remote service, a rule engine, or
something nobody here has heard of.
"""

# %%
# Points in a plane. The function knows two moons; the explainer sees its answers only.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from cfproto_plugin import CounterfactualExplainer, SearchConfig

X, y = make_moons(400, noise=0.15, random_state=0)
inner = KNeighborsClassifier(15).fit(X, y)
calls = []


def black_box(rows):
    """Probabilities of two classes."""
    calls.append(len(rows))
    return inner.predict_proba(rows)


# %%
# The default, and the nearest answer that there is. The nearest one ends right behind the boundary, where a model trained
# tomorrow may disagree; the default goes where the new class is at home.
points = X[[3, 10, 50, 77, 120, 200]]
default = CounterfactualExplainer(black_box).fit(X).explain(points)
close = CounterfactualExplainer(black_box, search=SearchConfig.close()).fit(X).explain(points)
print(f"{default.meta['n_predict_calls']} calls for six rows; all told {len(calls)}, fitting two explainers included")

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 160), np.linspace(-1.2, 1.7, 120)), axis=-1)
shade = inner.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
for ax, e, name in zip(axes, (close, default), ("SearchConfig.close()", "the default"), strict=True):
    ax.contourf(grid[..., 0], grid[..., 1], shade, levels=[0, 0.5, 1], colors=["0.95", "0.8"])
    for label, marker in ((0, "o"), (1, "^")):
        ax.scatter(*X[y == label].T, s=9, marker=marker, color="0.55")
    for before, after in zip(e.original, e.counterfactual, strict=True):
        ax.annotate("", after, before, arrowprops={"arrowstyle": "->", "lw": 1.8})
    ax.set_title(f"{name}: median distance {np.median(e.distance):.2f}")
plt.show()
