"""For authors of plugins: what adapters and providers of any framework need, so that nobody has to copy ours.

Arrays in, arrays out; no framework is imported.
"""

from cfproto_plugin.helpers.frames import FrameColumns, column_order, numbers_of, table_rows
from cfproto_plugin.helpers.kinds import library_of, load_pandas, take, to_pandas
from cfproto_plugin.helpers.nearest import nearest_first
from cfproto_plugin.helpers.networks import Network, NetworkAdapter
from cfproto_plugin.helpers.probabilities import (
    Meaning,
    Output,
    ScoreReader,
    logits_of,
    score_rows,
    softmax,
    two_columns,
)
from cfproto_plugin.helpers.trees import tree_probabilities, tree_scores, tree_thresholds

__all__ = [
    "FrameColumns",
    "Meaning",
    "Network",
    "NetworkAdapter",
    "Output",
    "ScoreReader",
    "column_order",
    "library_of",
    "load_pandas",
    "logits_of",
    "nearest_first",
    "numbers_of",
    "score_rows",
    "softmax",
    "table_rows",
    "take",
    "to_pandas",
    "tree_probabilities",
    "tree_scores",
    "tree_thresholds",
    "two_columns",
]
