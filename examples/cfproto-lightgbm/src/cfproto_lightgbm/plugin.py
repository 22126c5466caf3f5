"""What the entry point names: the hooks, each with what this package offers. Importing it imports no LightGBM."""

from __future__ import annotations

from cfproto_plugin import AdapterSpec, DistanceSpec, ModelFile, PrototypeSpec, hookimpl

from cfproto_lightgbm.adapter import LightGBMAdapter, load_booster
from cfproto_lightgbm.medoids import MedoidPrototypes
from cfproto_lightgbm.occurrence import OccurrenceDistance


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    # LGBMModel also catches regressors and rankers, which scikit-learn's BaseEstimator would otherwise take.
    claims = ("lightgbm.sklearn:LGBMClassifier", "lightgbm.sklearn:LGBMModel", "lightgbm.basic:Booster")
    files = (ModelFile((".txt",), load_booster, safe=True),)
    return [AdapterSpec("lightgbm", claims=claims, factory=LightGBMAdapter, files=files)]


@hookimpl
def cfproto_prototypes() -> list[PrototypeSpec]:
    return [PrototypeSpec("medoid", MedoidPrototypes)]


@hookimpl
def cfproto_distances() -> list[DistanceSpec]:
    return [DistanceSpec("occurrence", OccurrenceDistance)]
