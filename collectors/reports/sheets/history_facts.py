"""What happened to paths and maps, as facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.graph import Lun, Path
from collectors.reports.sheets.path_history import PathFailures, PathHistories, SwitchHistory
from collectors.reports.sheets.sheet import SheetFact, fact
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
