"""
# Proofs: is there nothing nearer?

For models made of trees the best answer can be proved: `certify="optimal"` improves until nothing smaller is possible,
or the time is spent. The same computation is a certificate about a row: no smaller change flips the decision.
"""

# %%
# A boosted model of the Wine table.
import matplotlib.pyplot as plt
import xgboost
from sklearn.datasets import load_wine

from cfproto_plugin import CounterfactualExplainer, SearchConfig

X, y = load_wine(return_X_y=True, as_frame=True)
model = xgboost.XGBClassifier(n_estimators=40, max_depth=3).fit(X, y)

# %%
# The nearest answers, each with its proof. `gap` is 0 where the answer is proved to be the best.
explainer = CounterfactualExplainer(model, search=SearchConfig.close(certify="optimal")).fit(X)
e = explainer.explain(X[::30], time_budget=30)
print(
    e.to_frame()[["row", "counterfactual_class", "objective", "lower_bound", "gap", "message"]].to_string(index=False)
)

# %%
# Without a search: how far is each of these rows from any other class? An auditor of a refusal asks for this number.
certificate = explainer.certificate(X[::30], time_budget=30)
for row, bound in enumerate(certificate.lower_bound):
    print(f"row {row}: no admissible change with J below {bound:.3f} leads to another class")

# %%
# How far the rows are from another class, and how far the default answers lie: the difference is what being typical and
# stable costs.
default = CounterfactualExplainer(model).fit(X).explain(X[::30])
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
rows = range(len(e))
ax.hlines(rows, 0, certificate.lower_bound, color="0.6", lw=6, label="no change this small flips the class (proved)")
ax.plot(e.objective, rows, "o", color="black", label="nearest answer, close()")
ax.plot(default.distance, rows, "^", mfc="white", mec="black", label="the default's answer")
ax.set(xlabel="0.1·L1 + L2 from the row, in standard deviations", ylabel="row", yticks=rows)
ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.3), ncol=3, frameon=False, fontsize=8)
plt.show()
