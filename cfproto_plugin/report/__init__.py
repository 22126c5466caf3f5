"""How an explanation looks: as text in a terminal, as HTML in a notebook, and as an HTML file of its own.

Everything here reads the members of the `Explanation` it is given and imports nothing above it.
"""

from cfproto_plugin.report.document import report_html, write_report
from cfproto_plugin.report.page import as_html
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.report.sentences import as_sentence, how_in_words, why_not_in_words
from cfproto_plugin.report.tables import HEADS, as_frame, as_table, heads_beside
from cfproto_plugin.report.text import as_text
from cfproto_plugin.report.words import aligned, counted, number_dtypes, plain_cell, value_text

__all__ = [
    "HEADS",
    "aligned",
    "as_frame",
    "as_html",
    "as_sentence",
    "as_table",
    "as_text",
    "counted",
    "heads_beside",
    "how_in_words",
    "number_dtypes",
    "plain_cell",
    "ranked",
    "report_html",
    "value_text",
    "why_not_in_words",
    "write_report",
]
