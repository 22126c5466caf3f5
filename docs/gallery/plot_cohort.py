"""
# A cohort: whom does the model ask for more?

Many rows explained at once are an audit: how far is each group from the decision it wants, who has no way at all, and
which few actions would help most people?
"""

# %%
# Applicants of two towns. The model has no town, but it uses the postal district, which gives it away.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from cfproto_plugin import CounterfactualExplainer, Features

rng = np.random.default_rng(1)
n = 1_500
town = rng.choice(["north", "south"], n)
table = pd.DataFrame(
    {
        "age": rng.integers(20, 70, n),
        "income": rng.normal(2_900, 700, n).round(-1),
        "debt": rng.gamma(2.0, 600, n).round(-1),
        "years employed": rng.integers(0, 30, n),
        "district": np.where(town == "north", rng.integers(1, 5, n), rng.integers(4, 9, n)),
    }
)
score = table["income"] - table["debt"] + 25 * table["years employed"] - 160 * table["district"]
granted = np.where(score + rng.normal(0, 200, n) > 900, "granted", "refused")
model = RandomForestClassifier(200, random_state=0, n_jobs=1).fit(table, granted)

# %%
# Everybody who was refused, under rules that leave to people what is theirs to change.
rules = Features(vary=("income", "debt", "years employed"), increasing=("years employed",))
explainer = CounterfactualExplainer(model, features=rules).fit(table)
refused = np.flatnonzero(model.predict(table) == "refused")[:150]
e = explainer.explain(table.iloc[refused], target="granted")
summary = e.summary(by=town[refused])
print(summary)

# %%
summary.plot(figure=plt.figure(figsize=(13.6, 3.8), layout="constrained"))
plt.show()

# %%
# At most three actions that would help most of them. Each was tried on every applicant by the model itself.
print(e.actions(k=3))
