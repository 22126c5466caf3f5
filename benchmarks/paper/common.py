"""What the experiments share: where files go, tables, and what made a result."""

from __future__ import annotations

import csv
import datetime as dt
import math
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cfproto_plugin.metrics import MetricRecord

TOP = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("cfproto-plugin", "numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Places:
    """Where an experiment reads and writes."""

    cache: Path = TOP / ".cache" / "paper"
    results: Path = TOP / "benchmarks" / "results" / "paper"
    docs: Path = TOP / "docs"

    @classmethod
    def under(cls, folder: Path) -> Places:
        """Everything below one folder, for trying out."""
        return cls(folder / "cache", folder / "results", folder / "docs")

    def picture(self, name: str) -> Path:
        """The file of a picture of the docs."""
        (self.docs / "pictures").mkdir(parents=True, exist_ok=True)
        return self.docs / "pictures" / name


def about(command: str, seconds: float, packages: Sequence[str] = PACKAGES) -> str:
    """The line at the end of a report: when, with what, how long."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    date = dt.datetime.now(tz=dt.UTC).date().isoformat()
    return f"{date}, `{command}`, {duration(seconds)} in all; Python {platform.python_version()}, {versions}."


def duration(seconds: float) -> str:
    """In words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def number(value: float) -> str:
    """Three digits, without an exponent."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def plus_minus(record: MetricRecord, factor: float = 1.0) -> str:
    """The mean with half the width of its bounds, as the paper writes it."""
    half = factor * (record.upper - record.lower) / 2
    mean = number(factor * record.mean)
    return mean if math.isnan(half) else f"{mean} ± {number(half)}"


def per_cent(change: float) -> str:
    """-0.87 is "-87 %"; what would be rounded to nothing left keeps a digit more."""
    if not math.isfinite(change):
        return "-" if math.isnan(change) else "unbounded"
    return f"{100 * change:+.1f} %" if -1 < change < -0.99 else f"{round(100 * change):+d} %"


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def write_csv(file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """One line per record; floats to six digits."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in line.items()})


def wrapped(text: str) -> str:
    """Paragraphs and lists in lines of at most 120; tables, headings and pictures as they are."""
    blocks = [block.strip() for block in text.strip().split("\n\n")]
    return "\n\n".join(block if block[:1] in {"|", "#", "!"} else _filled(block) for block in blocks)


def _filled(block: str) -> str:
    lead = "- " if block.startswith("- ") else ""
    items = [" ".join(item.split()) for item in block.removeprefix("- ").split("\n- ")]
    return "\n".join(textwrap.fill(i, 120, initial_indent=lead, subsequent_indent=" " * len(lead)) for i in items)


def write_page(file: Path, parts: Sequence[str], *, kept: bool = False) -> None:
    """Paragraphs to a page. kept: nothing was made anew, so that the last one, which says when, stays as it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    paragraphs = [wrapped(part) for part in parts]
    if kept and file.exists():
        paragraphs[-1] = file.read_text().rstrip().rsplit("\n\n", 1)[-1]
    file.write_text("\n\n".join(paragraphs) + "\n")
