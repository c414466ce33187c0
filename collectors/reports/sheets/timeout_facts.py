"""Timeouts of paths as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collectors.graph import Path
from collectors.reports.sheets.sheet import SheetFact, common_fact

NEVER = "off (never)"


def timeout_facts(paths: Sequence[Path]) -> Iterator[SheetFact]:
    """Yield the timeouts that the transport of these paths has; those of NVMe over PCIe are few."""
    nvme = any(path.address.startswith("nvme") for path in paths)
    name = "I/O timeout" if nvme else "SCSI timeout"
    yield _common(name, paths, lambda path: _ms(path.timeout_ms), "the driver shows none")
    if not nvme:
        yield _common("eh_timeout", paths, lambda path: _s(path.eh_timeout_s), "no SCSI device")
    loss = "ctrl_loss_tmo" if nvme else "dev_loss_tmo"
    only = (
        "the kernel shows none; only NVMe over fabrics has it"
        if nvme
        else "the kernel shows none; only Fibre Channel has it"
    )
    yield _common(loss, paths, lambda path: _s(path.loss_timeout_s), only)
    iscsi = not nvme and all(path.loss_timeout_s is None and path.fast_fail_timeout_s is not None for path in paths)
    name = "recovery_tmo" if paths and iscsi else "fast_io_fail_tmo"
    yield _common(name, paths, lambda path: _s(path.fast_fail_timeout_s), only)
    if nvme:
        yield _common("reconnect_delay", paths, lambda path: _s(path.reconnect_delay_s), only)
        yield _common("kato", paths, lambda path: _s(path.keep_alive_s), "the kernel shows none")


def _common(title: str, paths: Sequence[Path], of: Callable[[Path], str | None], reason: str) -> SheetFact:
    return common_fact(title, ((path.name, of(path)) for path in paths), reason)


def _ms(value: int | None) -> str | None:
    return None if value is None else f"{value / 1000:g} s"


def _s(value: int | None) -> str | None:
    return None if value is None else NEVER if value < 0 else f"{value} s"
