"""Knobs by the keys of a job file: what a turn sets, in scenarios and in recorded events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.job.describe import AS_READS, NEVER, UNLIMITED
from engine.job.distribution_text import format_distribution
from engine.job.file import KNOBS, quoted
from engine.job.sizes import format_blocks, format_number
from engine.job.values import READERS


@dataclass(frozen=True, slots=True)
class KnobText:
    """How one field of Knobs is read and written in TOML."""

    key: str
    """As in a job file."""
    write: Callable[[Any], str]
    unset: str | None = None
    """The word for None."""

    def read(self, value: object) -> Any:  # noqa: ANN401 (each knob has a type of its own)
        """Read a value as TOML or an event holds it.

        Raises:
            WrongTypeError: it is of another type.
            UsageError: its text cannot be read.
        """
        return None if self.unset is not None and value in (None, self.unset) else READERS[self.key](value)

    def line(self, value: object) -> str:
        """Write a value as a line of TOML that `read` reads back as the same."""
        return f"{self.key} = {quoted(self.unset or '') if value is None else self.write(value)}"


def _text(write: Callable[[Any], str] = str) -> Callable[[Any], str]:
    return lambda value: quoted(write(value))


_KEYS = {field: key for key, field in KNOBS.items()} | {"read_pct": "read_pct"}
_WRITERS: dict[str, Callable[[Any], str]] = {
    "blocks": _text(format_blocks),
    "write_blocks": _text(format_blocks),
    "distribution": _text(format_distribution),
    "write_distribution": _text(format_distribution),
    "mode": _text(),
    "policy": _text(),
    "read_pct": format_number,
    "rate_iops": format_number,
}
_UNSET = {
    "write_blocks": AS_READS,
    "write_distribution": AS_READS,
    "fsync_every": NEVER,
    "rate_iops": UNLIMITED,
}
KNOB_TEXTS = {field: KnobText(key, _WRITERS.get(field, str), _UNSET.get(field)) for field, key in _KEYS.items()}
"""By the field of Knobs."""
FIELDS = {text.key: field for field, text in KNOB_TEXTS.items()}
"""Field of Knobs by the key of a job file."""
