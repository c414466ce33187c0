"""What happened to paths and maps, their timeouts, and totals since counters were cleared, as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collectors.graph import Lun, Path
from collectors.kernel.hotplug_changes import size_text
from collectors.reports.sheets.path_history import PathFailures, PathHistories, SwitchHistory
from collectors.reports.sheets.sheet import SheetFact, SheetSection, common_fact, fact
from collectors.reports.totals.level import LevelTotals
from collectors.session.time_format import iso_time
from engine.text import safe_text, three_digits

NOT_OBSERVED = "nothing was observed before: a screen or a recording follows paths over time"
SECOND_NS = 1_000_000_000


def observed_fact(history: PathHistories) -> SheetFact:
    """State the range of time that the history is of."""
    if history.start_ns is None:
        return fact("observed", None, NOT_OBSERVED)
    length = duration_text(history.end_ns - history.start_ns)
    return fact("observed", f"{length}, since {iso_time(history.start_ns)}")


def duration_text(length_ns: int) -> str:
    """Write a length of time: "12.3 s", "4 min 5 s", "2 h 3 min"."""
    seconds = max(0, length_ns) / SECOND_NS
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def path_history_facts(name: str, history: PathHistories) -> Iterator[SheetFact]:
    """Yield the history of one path."""
    yield observed_fact(history)
    if history.start_ns is None:
        return
    one = history.paths.get(safe_text(name), PathFailures())
    yield fact("failures", _failures(one.failures, history))
    yield fact("last failure", _time(one.last_failure_ns), "none was observed")
    yield fact("back", _back(one), "none was observed")
    yield fact("time down", duration_text(one.total_down_ns(history.end_ns)))


def lun_history(lun: Lun, paths: Sequence[Path], history: PathHistories) -> Iterator[SheetFact]:
    """Yield the history of a LUN: its failovers and the failures of its paths."""
    yield observed_fact(history)
    if history.start_ns is None:
        return
    if lun.multipath == "dm":
        switch = history.switches.get(safe_text(lun.name), SwitchHistory())
        yield fact("failovers", f"{switch.count:,}" + (f", last {_time(switch.last_ns)}" if switch.last_ns else ""))
    known = {path.name: history.paths.get(safe_text(path.name), PathFailures()) for path in paths}
    yield fact("path failures", _failures(sum(one.failures for one in known.values()), history))
    failed = [(one.last_failure_ns, name) for name, one in known.items() if one.last_failure_ns is not None]
    last = max(failed, default=None)
    yield fact("last failure", None if last is None else f"{last[1]}, {_time(last[0])}", "none was observed")
    down = [
        f"{name} {duration_text(length)}"
        for name, one in known.items()
        if (length := one.total_down_ns(history.end_ns))
    ]
    yield fact("time down", ", ".join(down) or "none")


def _failures(count: int, history: PathHistories) -> str:
    rate = history.flaps_per_hour(count)
    return f"{count:,}" + ("" if not count or rate is None else f" ({three_digits(rate)} per hour)")


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else iso_time(time_ns)


def _back(one: PathFailures) -> str | None:
    return "not yet" if one.down_since_ns is not None else _time(one.last_return_ns)


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


NO_COUNTER = "the kernel has no such counter here"


def totals_section(title: str, totals: LevelTotals | None, reason: str) -> SheetSection:
    """Make the section of totals; `reason` says why there are none."""
    if totals is None:
        return SheetSection(title, (fact("totals", None, reason),))
    return SheetSection(title, tuple(_facts(totals)))


def _facts(totals: LevelTotals) -> Iterator[SheetFact]:
    yield fact("cleared", f"{iso_time(totals.since_ns)}, {duration_text(round(totals.elapsed_s * SECOND_NS))} ago")
    yield fact("I/Os", _ios(totals), "no I/O is counted")
    yield fact("bytes", _bytes(totals), "no I/O is counted")
    for title, value in (
        ("errors", totals.errors),
        ("timeouts", totals.timeouts),
        ("retries", totals.retries),
        ("failovers", totals.failovers),
    ):
        yield fact(title, None if value is None else f"{value:,}", NO_COUNTER)
    latency = totals.max_latency_ns
    yield fact("max latency", None if latency is None else f"{latency / 1e6:.3f} ms", totals.latency_reason)


def _ios(totals: LevelTotals) -> str | None:
    if totals.reads is None or totals.writes is None:
        return None
    return f"{totals.reads + totals.writes:,}: {totals.reads:,} reads, {totals.writes:,} writes"


def _bytes(totals: LevelTotals) -> str | None:
    if totals.read_bytes is None or totals.write_bytes is None:
        return None
    return f"{size_text(totals.read_bytes)} read, {size_text(totals.write_bytes)} written"
