"""Limits on the aggressor, as --cap names them, and their names in each version of control groups."""

from __future__ import annotations

from msgspec import Struct

from engine.errors import UsageError
from engine.job.sizes import format_size
from engine.text import safe_text, short_text
from engine.tune.legal import read_value

_V1 = {"riops": "blkio.throttle.read_iops", "rbps": "blkio.throttle.read_bps"}
_V2 = {"riops": "io.max.riops", "rbps": "io.max.rbps"}
NONE = "none"


class Cap(Struct, frozen=True):
    """Limits of one group on one device; without any it is not limited."""

    reads_per_s: int | None = None
    bytes_per_s: int | None = None

    @property
    def text(self) -> str:
        """As it is typed."""
        reads = [] if self.reads_per_s is None else [f"riops={self.reads_per_s}"]
        speed = [] if self.bytes_per_s is None else [f"rbps={format_size(self.bytes_per_s)}"]
        return ",".join((*reads, *speed)) or NONE

    def settings(self, *, unified: bool) -> list[str]:
        """Write it as settings of engine.tune."""
        names = _V2 if unified else _V1
        values = {"riops": self.reads_per_s, "rbps": self.bytes_per_s}
        return [f"{names[key]}={value}" for key, value in values.items() if value is not None]


NO_CAP = Cap()


def parse_cap(text: str) -> Cap:
    """Read `riops=500`, `rbps=10m`, both with a comma, or `none`.

    Raises:
        UsageError: it is none of these.
    """
    if text.strip() == NONE:
        return NO_CAP
    values: dict[str, int] = {}
    for part in text.split(","):
        key, _, value = (word.strip() for word in part.partition("="))
        unit = {"riops": "IO/s", "rbps": "B/s"}.get(key)
        number = "" if unit is None or not value else read_value(value, unit)
        if key in values or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 1 << 63:
            shown = safe_text(short_text(text, 80))
            raise UsageError(f"--cap '{shown}': write riops=500, rbps=10m, both with a comma, or none")
        values[key] = int(number)
    return Cap(values.get("riops"), values.get("rbps"))


def shares_of(reads_per_s: float) -> tuple[Cap, ...]:
    """Caps where none are named: a half and a tenth of what the aggressor reached without one."""
    limits = dict.fromkeys(max(int(reads_per_s * share), 1) for share in (0.5, 0.1))
    return tuple(Cap(limit) for limit in limits)
