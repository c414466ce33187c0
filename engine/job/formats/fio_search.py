"""Options with which fio looks for a load by itself: the work of a sweep (fio(1), I/O latency, Steady state)."""

from __future__ import annotations

from engine.job.formats.fio_sections import Given
from engine.job.formats.fio_values import fraction, seconds
from engine.job.formats.read_job import JobSearch
from engine.job.sizes import format_number
from engine.text import safe_text

_METRICS = {100.0: "max", 99.9: "p99.9", 99.0: "p99", 90.0: "p90", 50.0: "p50"}
_STEADY = (
    *("steadystate_duration", "ss_dur", "steadystate_ramp_time", "ss_ramp"),
    *("steadystate_check_interval", "ss_interval"),
)
SEARCHING = ("latency_target", "latency_window", "latency_percentile", "latency_run", "steadystate", "ss", *_STEADY)
"""Names of these options; windows and durations are the sweep's own."""


def _time(limit_s: float) -> str:
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if limit_s * scale < 1000:
            return f"{limit_s * scale:g}{unit}"
    return f"{format_number(limit_s)}s"


def take_search(given: Given, depth: int, work: str) -> JobSearch | None:
    """Take what a sweep does instead: the depths up to that of the job within the latency, or one depth until steady.

    `work` is what follows the verb in a command about this job: the file, and the section where there are several.

    Raises:
        UsageError: the percentile is none that a sweep judges.
    """
    target, percentile = given.take("latency_target"), given.take("latency_percentile")
    steady = given.take("steadystate", "ss")
    steady_dur = given.take("steadystate_duration", "ss_dur")
    for name in ("latency_window", "latency_run", *_STEADY):
        given.take(name)
    if target is not None and target.value != "0":
        wanted = 100.0 if percentile is None else fraction(percentile, percentile.text)
        if percentile is not None and wanted not in _METRICS:
            known = ", ".join(map(format_number, _METRICS))
            raise percentile.error(f"a sweep judges no {safe_text(percentile.text)} %: give one of {known}")
        vary = f"qd=1..{depth}" if depth > 1 else "qd=1"
        slo = f"{_METRICS[wanted]}<={_time(seconds(target, 'us'))}"
        error = target.error(
            f"looking for a depth is the work of a sweep: lunscope sweep {work}, as --vary {vary} --slo '{slo}'"
        )
        return JobSearch(str(error), vary, slo)
    if steady is None:
        return None
    error = steady.error(
        f"measuring until figures are steady is the work of a sweep: lunscope sweep {work}, or, of one section, of the "
        f"SNIA rule: lunscope run {work}"
    )
    steady_s = None if steady_dur is None else seconds(steady_dur, "s")
    return JobSearch(str(error), f"qd={depth}", None, steady.text, steady_s or None)
