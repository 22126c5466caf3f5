"""Explaining whole data sets: Parquet in, Parquet out, on one core, all cores, Ray, Dask or Spark.

`explain_dataset` runs a job that can be stopped and started again. `FrameExplainer` is the one function, frame in and
frame out, underneath; Dask's `map_partitions` and Spark's `mapInPandas` take it as it is. pyarrow and pandas are
imported when one of them is called.
"""

from cfproto_plugin.integrations.datasets.frames import FrameExplainer
from cfproto_plugin.integrations.datasets.job import explain_dataset
from cfproto_plugin.integrations.datasets.outcomes import DatasetReport

__all__ = ["DatasetReport", "FrameExplainer", "explain_dataset"]
