"""
# A Keras model

Keras 3 on TensorFlow or on PyTorch: the model is given as it is.
"""

# %%
# A network on the Wine table, with its scaling inside.
import keras
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from cfproto_plugin import CounterfactualExplainer, SearchConfig

X, y = load_wine(return_X_y=True, as_frame=True)
X = X.astype("float32")
keras.utils.set_random_seed(0)
scale = keras.layers.Normalization()
scale.adapt(X.to_numpy())
model = keras.Sequential(
    [scale, keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3, activation="softmax")]
)
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(X.to_numpy(), y, epochs=150, verbose=0)

# %%
# A network is smooth: without a price on changes it would move every column a little. By default a few columns do.
explainer = CounterfactualExplainer(model).fit(X)
e = explainer.explain(X[:3], target=1)
print(e)

# %%
# As near as possible instead, whatever it takes:
near = CounterfactualExplainer(model, search=SearchConfig.close()).fit(X).explain(X[:3], target=1)
print("columns changed:", e.n_changes, "by default,", near.n_changes, "as near as possible")
print("distance:       ", e.distance.round(2), "by default,", near.distance.round(2), "as near as possible")

# %%
# On the way to the prototype, the network's probability of the new class:
e[0].plot("path", figure=plt.figure(figsize=(9, 4.9), layout="constrained"))
plt.show()
