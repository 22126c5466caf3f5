"""What one request may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Any, Self

from cfproto_plugin.checks import is_count, is_number, shown
from cfproto_plugin.errors import ConfigError, did_you_mean
from cfproto_plugin.integrations.service.errors import ServiceError


@dataclass(frozen=True)
class Limits:
    """max_rows, max_bytes: of a request. max_seconds: from its arrival to its answer. max_waiting: requests in line.

    max_batch: requests that are explained together. max_wait: seconds that the first of them waits for others.
    threads: searches at a time.
    """

    max_rows: int = 1000
    max_bytes: int = 10_000_000
    max_seconds: float = 30.0
    max_waiting: int = 1000
    max_batch: int = 1
    max_wait: float = 0.0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_bytes", "max_waiting", "max_batch", "threads"):
            if not is_count(getattr(self, name)):
                raise ConfigError(f"{name} is {shown(getattr(self, name))}; expected a whole number of at least 1")
        if not is_number(self.max_seconds) or not self.max_seconds > 0:
            raise ConfigError(f"max_seconds is {shown(self.max_seconds)}; expected a positive number")
        if not is_number(self.max_wait) or self.max_wait < 0:
            raise ConfigError(f"max_wait is {shown(self.max_wait)}; expected a number of seconds, at least 0")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The limits of these settings."""
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigError(f"there is no limit {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}")
        return cls(**given)

    def check_size(self, rows: int, size: int | None) -> None:
        """Refuse a request that is too large. size: in bytes, if it is known."""
        if size is not None and size > self.max_bytes:
            raise ServiceError(
                f"the request has {size:,} bytes; at most {self.max_bytes:,} are taken. Send fewer rows at a time",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        if rows > self.max_rows:
            raise ServiceError(
                f"the request has {rows:,} rows; at most {self.max_rows:,} are taken. Send fewer rows at a time",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
