"""alibi's `CounterfactualProto`: the same calls and the same form of result, answered by this package.

    from cfproto_plugin.integrations.alibi import CounterfactualProto  # instead of alibi.explainers

alibi need not be installed. Written from its public documentation and its outputs.
"""

from cfproto_plugin.integrations.alibi.categories import ohe_to_ord, ord_to_ohe
from cfproto_plugin.integrations.alibi.explanation import Explanation
from cfproto_plugin.integrations.alibi.proto import CounterfactualProto

CounterFactualProto = CounterfactualProto  # its name until alibi 0.6

__all__ = ["CounterFactualProto", "CounterfactualProto", "Explanation", "ohe_to_ord", "ord_to_ohe"]
