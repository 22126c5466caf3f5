"""Measures of counterfactuals: the paper's IM1, IM2 and EN, plain distances, and its kernel comparison of methods.

Arrays in, arrays out: `im1`, `im2`, `elastic_net`, `l0`, `l1`, `l2`, `validity`, `neighbour_distance` and
`changed_attributes` give one number per row. `measure` takes an Explanation and gives them all, `evaluate` sums them up
with confidence bounds. `rel_multi` and `rel_psi` test which of several methods fits a class worse than the best one.
"""

from cfproto_plugin.metrics.comparison import Comparison, rel_multi, rel_psi
from cfproto_plugin.metrics.evaluation import evaluate, measure, validity
from cfproto_plugin.metrics.interpretability import im1, im2, neighbour_distance
from cfproto_plugin.metrics.kernels import imq_kernel, mmd2_u
from cfproto_plugin.metrics.sparsity import ChangedAttributes, changed_attributes, elastic_net, l0, l1, l2
from cfproto_plugin.metrics.table import MetricRecord, MetricTable, summarise

__all__ = [
    "ChangedAttributes",
    "Comparison",
    "MetricRecord",
    "MetricTable",
    "changed_attributes",
    "elastic_net",
    "evaluate",
    "im1",
    "im2",
    "imq_kernel",
    "l0",
    "l1",
    "l2",
    "measure",
    "mmd2_u",
    "neighbour_distance",
    "rel_multi",
    "rel_psi",
    "summarise",
    "validity",
]
