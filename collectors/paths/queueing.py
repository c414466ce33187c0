"""What happens to the I/O of a LUN while it has no usable path: it waits, for how long, or fails."""

from __future__ import annotations

import re
from typing import NamedTuple

from collectors.graph import Lun
from engine.text import safe_text

_CHECKS = re.compile(r"(\d{1,9}) chk")
NOT_READ = "not known: the table of the map was not read (it needs root, on the host itself)"
_NVME = "I/O waits while a controller resets or reconnects (up to fast_io_fail_tmo, ctrl_loss_tmo), then it fails"


class WithoutPaths(NamedTuple):
    """What happens to I/O without paths."""

    queues: bool | None
    """Whether it waits, at least for a time; None if unknown."""
    text: str
    """The same in words, safe to print."""


def without_paths(lun: Lun) -> WithoutPaths:
    """Say what happens if all paths of a LUN fail.

    The kernel decides by the feature queue_if_no_path of the map; multipathd removes that feature when the checks of
    no_path_retry are over (multipath.conf(5)).
    """
    if lun.multipath == "nvme":
        return WithoutPaths(
            None, "I/O waits while a controller reconnects; it fails when ctrl_loss_tmo has removed all"
        )
    if lun.multipath != "dm":
        return WithoutPaths(None, "no multipath: it has no other path")
    if lun.queue_if_no_path is None:
        return WithoutPaths(None, NOT_READ)
    if not lun.queue_if_no_path:
        return WithoutPaths(False, f"I/O fails at once{_why_failing(lun)}")
    return WithoutPaths(True, f"I/O waits {_how_long(lun)}")


def _why_failing(lun: Lun) -> str:
    if lun.queue_timeouts:
        return ": no queue_if_no_path; multipathd has stopped queueing after its retries before"
    return ": the map has no queue_if_no_path"


def _how_long(lun: Lun) -> str:
    checks = _CHECKS.fullmatch(lun.no_path_retry)
    if checks is not None:
        count = int(checks[1])
        if lun.retry_interval_s is None:
            return f"for {count} checks of multipathd, then it fails (no_path_retry {count})"
        seconds = count * lun.retry_interval_s
        return f"about {seconds} s, then it fails (no_path_retry {count} checks, {lun.retry_interval_s} s each)"
    if lun.no_path_retry == "counting":
        return "until multipathd's retries are over, which it counts now; then it fails"
    if lun.no_path_retry == "on":
        return "without limit (queue_if_no_path, no_path_retry queue)"
    if lun.no_path_retry:
        return f"without limit (queue_if_no_path; no_path_retry {safe_text(lun.no_path_retry)})"
    return "without limit as the map is (queue_if_no_path); multipathd did not answer, which may have a limit"
