"""How an explanation looks: as text in a terminal, as HTML in a notebook, and as a report file of its own."""

from cfproto_plugin.report.page import as_html, write_report
from cfproto_plugin.report.text import as_text
from cfproto_plugin.report.words import aligned, pair, ranked

__all__ = ["aligned", "as_html", "as_text", "pair", "ranked", "write_report"]
