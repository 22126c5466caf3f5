"""What a saved explainer consists of: a manifest with sizes and checksums, and the parts that it names."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT, SCHEMA = "cfproto-explainer", 1
MANIFEST = "manifest.json"
PARTS = ("explainer", "arrays", "model", "encoder", "autoencoder")
MAX_BYTES = 2**31  # that a saved explainer may have when unpacked, unless the caller allows more
MOST_MANIFEST = 2**20  # bytes
MOST_JSON = 2**28  # bytes of the part "explainer"
ZIPPED = (".zip", ".cfproto")
NAME = re.compile(rf"(?P<part>{'|'.join(PARTS)})(?P<hash>-[0-9a-f]{{12}})?\.[a-z0-9_]{{1,20}}")
BESIDE = ".cfproto-"  # begins the names of files that are being written
HASH = 12  # digits of a checksum in the names of a folder


def is_zipped(path: Path) -> bool:
    """Whether the name asks for one file."""
    return path.suffix.lower() in ZIPPED


def is_own(name: str) -> bool:
    """Whether a file in a folder is one that saving makes."""
    return name == MANIFEST or NAME.fullmatch(name) is not None or name.startswith(BESIDE)


def is_part_of_folder(name: str) -> bool:
    """Whether a file is named as the parts in a folder are: with a piece of its checksum."""
    found = NAME.fullmatch(name)
    return found is not None and found["hash"] is not None


def digest(content: bytes) -> str:
    """The checksum of a part."""
    return hashlib.sha256(content).hexdigest()


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """The checksum of a manifest, which it holds itself."""
    kept = {name: value for name, value in manifest.items() if name != "sha256"}
    return digest(json.dumps(kept, sort_keys=True).encode())
