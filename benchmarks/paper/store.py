"""Results kept in files, one per piece of work, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]


class Store:
    """A folder of .npz files. What was made with other settings is made again."""

    def __init__(self, folder: Path, *, compressed: bool = False) -> None:
        self.folder = folder
        self._save = np.savez_compressed if compressed else np.savez
        self._seconds: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Wall time that went into all results asked for, in this run or an earlier one."""
        return sum(self._seconds.values())

    def get(self, name: str, settings: dict[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """The arrays of that name, made now unless they are there already with the same settings."""
        file = self.folder / f"{name}.npz"
        found = self._read(file, json.dumps(settings, sort_keys=True, default=str))
        if found is None:
            start = time.perf_counter()
            made = {key: np.asarray(value) for key, value in make().items()}
            about = {"settings": settings, "seconds": time.perf_counter() - start}
            self._write(file, {**made, "__about__": np.array(json.dumps(about, sort_keys=True, default=str))})
            found = made, about["seconds"]
        self._seconds[name] = float(found[1])
        return found[0]

    def has(self, name: str, settings: dict[str, Any]) -> bool:
        """Whether the arrays of that name are there with the same settings."""
        return self._read(self.folder / f"{name}.npz", json.dumps(settings, sort_keys=True, default=str)) is not None

    @staticmethod
    def _read(file: Path, wanted: str) -> tuple[Arrays, float] | None:
        if not file.exists():
            return None
        with np.load(file) as kept:
            about = json.loads(str(kept["__about__"]))
            if json.dumps(about["settings"], sort_keys=True) != wanted:
                return None
            return {key: kept[key] for key in kept if key != "__about__"}, about["seconds"]

    def _write(self, file: Path, arrays: Arrays) -> None:
        """All or nothing: a run that is stopped here leaves no half file behind."""
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        with part.open("wb") as out:
            self._save(out, **arrays)
        part.replace(file)
