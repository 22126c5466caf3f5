"""The conformance kit of cfproto-plugin on everything this package offers."""

import lightgbm as lgb
import numpy as np
import pytest
from cfproto_plugin.testing import check_adapter, checks
from sklearn.datasets import load_breast_cancer, load_wine

from cfproto_lightgbm import LightGBMAdapter
from cfproto_lightgbm.plugin import cfproto_distances, cfproto_prototypes

CANCER, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
CODES = np.random.default_rng(0).integers(0, (3, 5), size=(60, 2))


def classifier(data, **options):
    return lgb.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1, **options).fit(*data)


CONFORMANCE = [
    *checks(classifier(CANCER), CANCER[0][::12]),
    *checks(*cfproto_prototypes(), *WINE),
    *checks(*cfproto_distances(), CODES, (3, 5), CODES, CODES[:, 0]),
]


@pytest.mark.parametrize("check", CONFORMANCE, ids=str)
def test_package_conforms(check):
    check()


@pytest.mark.parametrize("options", [{}, {"boosting_type": "dart"}, {"linear_tree": True}])
def test_classifier_of_several_classes_conforms(options):
    model = classifier(WINE, **options)
    check_adapter(LightGBMAdapter(model), WINE[0][::6], model=model)


@pytest.mark.parametrize(
    ("objective", "n_class"),
    [("binary", 1), ("cross_entropy", 1), ("cross_entropy_lambda", 1), ("multiclass", 3), ("multiclassova", 3)],
)
def test_booster_conforms(objective, n_class):
    x, y = CANCER if n_class == 1 else WINE
    parameters = {"objective": objective, "num_class": n_class, "num_threads": 1, "verbose": -1}
    model = lgb.train(parameters, lgb.Dataset(x, y), 8)
    check_adapter(LightGBMAdapter(model), x[::12], model=model)
