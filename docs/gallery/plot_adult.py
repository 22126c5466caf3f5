"""
# Adult: categories as they are

Half of the columns of the Adult census table are words. The search moves between categories by distances that it learns
from the data, as the paper does: two jobs are near each other if they go with the same incomes and schooling.
"""

# %%
# The table is read from the folder that `CFPROTO_DATA` names, or from OpenML.
import matplotlib.pyplot as plt
import xgboost
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.datasets import load_adult

X, income = load_adult()
X = X.drop(columns=["fnlwgt", "education-num"])
train, rest = X[:8_000], X[8_000:]
words = make_column_selector(dtype_include=["object", "string", "category"])
model = make_pipeline(
    make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"),
    xgboost.XGBClassifier(n_estimators=80, max_depth=5),
).fit(train, income[:8_000] == ">50K")

# %%
# Nobody changes sex, race or country of birth, and nobody becomes younger.
rules = Features(immutable=("sex", "race", "native-country"), increasing=("age",))
explainer = CounterfactualExplainer(model, features=rules).fit(train)
poor = rest[:300][model.predict(rest[:300]) == 0]
e = explainer.explain(poor[:20], target=True)
for line in range(3):
    print(e.sentence(line), end="\n\n")

# %%
# What changes in these twenty answers, how often and which way:
e.plot(figure=plt.figure(figsize=(6.9, 5.2), layout="constrained"))
plt.show()

# %%
# How alike the search takes the levels of education to be:
e.plot("embedding", column="education", figure=plt.figure(figsize=(9, 7), layout="constrained"))
plt.show()
