"""Views of many answers at once: what changes, how often and how far, by class and by group."""

from cfproto_plugin.report.cohorts.actions import Action, Actions, found_actions
from cfproto_plugin.report.cohorts.groups import Groups
from cfproto_plugin.report.cohorts.summary import FeatureRecord, GroupRecord, Summary, summarised

__all__ = [
    "Action",
    "Actions",
    "FeatureRecord",
    "GroupRecord",
    "Groups",
    "Summary",
    "found_actions",
    "summarised",
]
