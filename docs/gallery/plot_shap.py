"""
# XGBoost and SHAP

A counterfactual says what to change. Its *contributions* say how much each change adds to the probability of the new
class; they add up, so SHAP's own plots can draw them.
"""

# %%
# A model of scikit-learn's Breast Cancer table.
import matplotlib.pyplot as plt
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from cfproto_plugin import CounterfactualExplainer

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
train, rest, labels, _ = train_test_split(X, y.map({0: "malignant", 1: "benign"}), random_state=0)
classes = sorted(set(labels))
model = xgboost.XGBClassifier(n_estimators=100, max_depth=4).fit(train, [classes.index(label) for label in labels])

# %%
# Ten rows in one call. XGBoost numbers its classes: 0 is benign, 1 malignant.
explainer = CounterfactualExplainer(model).fit(train)
e = explainer.explain(rest[:10])
print(e.sentence(0))

# %%
# The waterfall of the first row starts at the probability of the new class before any change and ends at that of the
# counterfactual.
import shap

shap.plots.waterfall(e.to_shap()[0], show=False)
plt.tight_layout()
plt.show()

# %%
# The numbers behind it, exact Shapley values over the changed columns:
print(e[0].contributions_frame()[["feature", "before", "after", "contribution"]].to_string(index=False))

# %%
# All ten rows at once: which changes carry the answers?
shap.plots.bar(e.to_shap(), max_display=8, show=False)
plt.tight_layout()
plt.show()
