"""A plugin of cfproto-plugin: an adapter for LightGBM, medoid prototypes and the occurrence distance."""

from cfproto_lightgbm.adapter import LightGBMAdapter
from cfproto_lightgbm.medoids import MedoidPrototypes
from cfproto_lightgbm.occurrence import OccurrenceDistance

__all__ = ["LightGBMAdapter", "MedoidPrototypes", "OccurrenceDistance"]
