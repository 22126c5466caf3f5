"""
# Proofs: is there nothing nearer?

For models made of trees the best answer can be proved: `certify="optimal"` improves until nothing smaller is possible,
or the time is spent. The same computation is a certificate about a row: no smaller change flips the decision.
"""

# %%
# A boosted model of the Wine table.
import xgboost
from sklearn.datasets import load_wine

from cfproto_plugin import CounterfactualExplainer, SearchConfig

X, y = load_wine(return_X_y=True, as_frame=True)
model = xgboost.XGBClassifier(n_estimators=40, max_depth=3).fit(X, y)

# %%
# The nearest answers, each with its proof. `gap` is 0 where the answer is proved to be the best.
explainer = CounterfactualExplainer(model, search=SearchConfig.close(certify="optimal")).fit(X)
e = explainer.explain(X[::30], time_budget=30)
print(e.to_frame()[["row", "counterfactual_class", "objective", "lower_bound", "gap", "message"]].to_string(index=False))

# %%
# Without a search: how far is each of these rows from any other class? An auditor of a refusal asks for this number.
certificate = explainer.certificate(X[::30], time_budget=30)
for row, bound in enumerate(certificate.lower_bound):
    print(f"row {row}: no admissible change with J below {bound:.3f} leads to another class")
