"""One number per image and measure, as a committed file: a later run goes on from it instead of searching again.

Beside it stand facts: what the page says of the networks, and with which settings the product's lines were searched.

Networks are trained anew where the store is empty. With the same versions and one thread they come out the same, and
so do the measures: loss E on 50 images of seed 0, searched again with networks trained again, to six digits.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import write_csv
from store import Arrays

ABOUT = ("image", "seed", "original_class", "counterfactual_class")  # columns that are no measure


@dataclass(frozen=True)
class Recorded:
    """Rows of earlier runs, by setting and seed of the networks."""

    rows: dict[tuple[str, int], dict[int, dict[str, float]]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path, facts: Path | None = None) -> Recorded:
        """Nothing if there is no such file."""
        found = cls(facts=json.loads(facts.read_text()) if facts and facts.exists() else {})
        if file.exists():
            with file.open() as opened:
                for line in csv.DictReader(opened):
                    numbers = {name: float(text or "nan") for name, text in line.items() if name != "setting"}
                    seed = int(line.get("seed") or 0)
                    numbers["seed"] = seed
                    images = found.rows.setdefault((line["setting"], seed), {})
                    images[int(numbers["image"])] = numbers
        return found

    def fact(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Made now unless it is on record."""
        if name not in self.facts:
            self.facts[name] = {key: np.asarray(value).tolist() for key, value in make().items()}
        return dict(self.facts[name])

    @property
    def seeds(self) -> int:
        """How many seeds of the networks, from 0 on, have rows."""
        return max((seed + 1 for _, seed in self.rows), default=0)

    def images(self, setting: str, seed: int) -> int:
        """How many images a setting has."""
        return len(self.rows.get((setting, seed), {}))

    def taken(self, setting: str, seed: int, images: np.ndarray) -> Arrays | None:
        """The measures of these images (n,); None unless all of them are there."""
        known = self.rows.get((setting, seed), {})
        if not all(image in known for image in images.tolist()):
            return None
        lines = [known[image] for image in images.tolist()]
        return {name: np.array([line.get(name, np.nan) for line in lines]) for name in lines[0]}


def joined(parts: Sequence[Arrays]) -> Arrays:
    """One after the other; NaN where an older part lacks a column."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.full(len(part["image"]), np.nan)) for part in parts]) for name in names
    }


def as_written(lines: Mapping[str, Sequence[Arrays]]) -> dict[str, list[Arrays]]:
    """The numbers as the file will have them: a page is of these, whether they were searched or read."""
    rounded = np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])
    return {name: [{c: rounded(v) for c, v in part.items()} for part in parts] for name, parts in lines.items()}


def write_facts(file: Path, facts: Mapping[str, Any]) -> None:
    """As they are read."""
    file.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


def write(file: Path, lines: Mapping[str, Sequence[Arrays]]) -> None:
    """A row per setting, seed and image."""
    columns = dict.fromkeys(column for parts in lines.values() for part in parts for column in part)
    write_csv(
        file,
        [
            {"setting": name, **{column: _number(part[column][i]) if column in part else "" for column in columns}}
            for name, parts in lines.items()
            for part in parts
            for i in range(len(part["image"]))
        ],
    )


def _number(value: np.generic) -> float | int:
    """Whole numbers without a point."""
    plain = float(value)
    return int(plain) if plain.is_integer() else plain
