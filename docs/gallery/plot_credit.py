"""
# A credit table with rules

A bank's model refuses an applicant. What would have to change, given that nobody becomes younger, that the job is what it
is, and that instalments have to fit the income?
"""

# %%
# The table is drawn here, so that you can run this page anywhere: an applicant has an age, an income, a debt, a job and a
# home. The model is a pipeline that takes the table as it is, strings included.
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

rng = np.random.default_rng(0)
n = 1_000
table = pd.DataFrame(
    {
        "age": rng.integers(19, 75, n),
        "income": rng.normal(3_000, 900, n).clip(900).round(-1),
        "debt": rng.gamma(2.0, 900, n).round(-1),
        "job": rng.choice(["clerk", "nurse", "engineer", "teacher"], n),
        "home": rng.choice(["rented", "owned"], n),
    }
)
score = table["income"] - 0.9 * table["debt"] + 300 * (table["home"] == "owned") + rng.normal(0, 300, n)
granted = np.where(score > 1_400, "granted", "refused")
model = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["job", "home"]), remainder="passthrough"),
    HistGradientBoostingClassifier(random_state=0),
).fit(table, granted)

# %%
# Rules are part of the explainer. `relations` are written as text; they may hold arithmetic.
from cfproto_plugin import CounterfactualExplainer, Features

rules = Features(
    immutable=("job",),
    increasing=("age",),
    ranges={"debt": (0, 6_000)},
    step={"income": 50, "debt": 50},
    relations=("debt <= 2*income",),
)
explainer = CounterfactualExplainer(model, features=rules).fit(table)

# %%
# The first refused applicants of the table, and what the model would have needed to see.
refused = table[model.predict(table) == "refused"].head(4)
e = explainer.explain(refused, target="granted")
print(e.sentence(0))

# %%
# The same as a picture. The grey band is where most granted applicants are.
import matplotlib.pyplot as plt

e[0].plot(figure=plt.figure(figsize=(9.2, 2.2), layout="constrained"))
plt.show()

# %%
# The answers were put to the model itself, as they are returned:
print(model.predict(e.counterfactual))

# %%
# Three different ways for one applicant: the answer of a single one first, then ones that change something else.
three = explainer.explain(refused.iloc[[0]], target="granted", n=3)
three.plot(figure=plt.figure(figsize=(10, 3.3), layout="constrained"))
plt.show()
