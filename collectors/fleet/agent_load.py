"""The load of one host, as its agent is asked for it; the guard of that host decides what may be driven."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from msgspec import ValidationError, convert, to_builtins

from collectors.fleet.frames import Frame, FrameError, encode, text, texts, whole
from engine.config import scratch_folder
from engine.errors import LunscopeError
from engine.guard.given import bound
from engine.job.file import parse_job
from engine.job.spec import Knobs, Permissions, TargetIdentity
from engine.job.validate import validate
from engine.results.measured import Split
from engine.results.result import RunResult
from engine.results.result_document import run_document
from engine.running.control import LoadControl, LoadState
from engine.running.counter_reader import ERRORS, FAILING, IOS, LATENCIES, OUTSTANDING_NS, SERVICES

_LATEST_START_S = 60.0
"""The furthest in the future that something may be asked for."""
_POLL_S = 0.1
_OPENING_S = 0.005
_ENDED_S = 0.5
"""How long the end of a load that refused a turn may take to be known."""

_Answer = Mapping[str, object] | None
"""What an answer holds beside its times."""
_Act = Callable[[], _Answer]


class AgentLoad:
    """Arms, starts, turns and stops, each in a thread of its own, and sends what became of it."""

    def __init__(self, control: LoadControl, send: Callable[[bytes], object], stopped: threading.Event) -> None:
        self._control = control
        self._send = send
        self._stopped = stopped
        self._reported: RunResult | None = None
        self._given: dict[str, TargetIdentity | None] = {}
        """What each name led to when it was first armed: the controller's operator allowed that, once for all loads."""

    def handle(self, frame: Frame) -> None:
        """Do what a frame asks for; never blocks.

        Raises:
            FrameError: it lacks a field.
        """
        number, what = whole(frame, "number"), text(frame, "type")
        match what:
            case "arm":
                job, allowed = text(frame, "job"), frozenset(texts(frame, "allow_write"))
                permissions = Permissions(allowed, frame.get("destroy_data") is True, make_in=scratch_folder())
                given = _given(frame) | self._given
                self._in_thread(number, what, 0, lambda: self._arm(job, bound(permissions, given)))
            case "start":
                open_ended = frame.get("open_ended") is True
                self._in_thread(number, what, whole(frame, "at_ns"), lambda: self._start(open_ended=open_ended))
            case "turn":
                job = text(frame, "job")
                self._in_thread(number, what, whole(frame, "at_ns"), None, lambda: self._turn_to(job))
            case "end":
                end_ns = whole(frame, "end_ns")
                self._in_thread(number, what, 0, lambda: self._end_at(end_ns))
            case "part":
                self._in_thread(number, what, whole(frame, "at_ns"), self._control.part_epoch)
            case "peek":
                self._in_thread(number, what, 0, self._peek)
            case "epoch":
                self._in_thread(number, what, 0, self._epoch)
            case "stop":
                self._in_thread(number, what, 0, lambda: self._stop(verify=frame.get("verify") is True))

    def _in_thread(
        self, number: int, what: str, at_ns: int, act: _Act | None, ready: Callable[[], _Act] | None = None
    ) -> None:
        """Act at a time in a thread of its own; `ready` makes the act before that time."""
        arguments = (number, what, at_ns, act, ready)
        threading.Thread(target=self._do, args=arguments, name=f"lunscope-{what}", daemon=True).start()

    def _do(
        self, number: int, what: str, at_ns: int, act: _Act | None, ready: Callable[[], _Act] | None = None
    ) -> None:
        error, answer = "", dict[str, object]()
        if ready is not None:
            try:
                act = ready()
            except LunscopeError as refusal:
                error = str(refusal)
        wait_s = (at_ns - time.monotonic_ns()) / 1e9 if at_ns else 0.0
        if wait_s > _LATEST_START_S:
            error = f"{what}: {wait_s:.0f} s in the future"
        elif wait_s > 0:
            self._stopped.wait(wait_s)
        began_ns = time.monotonic_ns()
        if act is not None and not error and not self._stopped.is_set():
            try:
                answer.update(act() or {})
            except LunscopeError as refusal:
                error = str(refusal)
            except Exception as failure:
                error = f"{what}: {type(failure).__name__}: {failure}"
        ended_ns = time.monotonic_ns()
        self._send(encode("done", number=number, what=what, at_ns=began_ns, ended_ns=ended_ns, error=error, **answer))

    def _arm(self, job: str, permissions: Permissions) -> _Answer:
        spec = parse_job(job, "job of the fleet")
        validate(spec)
        self._control.arm(spec, permissions)
        self._control.recheck()
        self._given |= permissions.given
        return {"given": to_builtins(permissions.given)}

    def _start(self, *, open_ended: bool) -> None:
        if open_ended:
            # The controller says when, as the turns decide how long it is; the lease bounds it until then.
            self._control.end_after(None)
        self._control.start()
        threading.Thread(target=self._report_end, name="lunscope-result", daemon=True).start()

    def _turn_to(self, job: str) -> _Act:
        knobs = parse_job(job, "knobs of the fleet").knobs
        return lambda: self._turn(knobs)

    def _turn(self, knobs: Knobs) -> _Answer:
        """Turn, and return when the knobs are in force or the load is over."""
        try:
            self._control.turn(knobs)
        except LunscopeError:
            if self._control.wait(_ENDED_S) and self._is_over():
                return {"over": True}
            raise
        while self._control.opens and not self._is_over() and not self._stopped.wait(_OPENING_S):
            pass
        return {"over": self._is_over()}

    def _is_over(self) -> bool:
        return self._control.status.state in {LoadState.FINISHED, LoadState.FAILED}

    def _end_at(self, end_ns: int) -> None:
        left_s = (end_ns - time.monotonic_ns()) / 1e9
        self._control.end_after(max(self._control.status.elapsed_s + left_s, 0.0))

    def _peek(self) -> _Answer:
        counters = self._control.peek()
        if counters is None:
            raise LunscopeError(self._control.status.message or "no load runs")
        return {
            "ios": int(counters[:, IOS].sum()),
            "errors": int(counters[:, ERRORS].sum()),
            "latency_ns": int(counters[:, LATENCIES].sum()),
            "service_ns": int(counters[:, SERVICES].sum()),
            "outstanding_ns": int(counters[:, OUTSTANDING_NS].sum()),
            "failing": bool(counters[:, FAILING].any()),
        }

    def _epoch(self) -> _Answer:
        epoch = self._control.last_epoch()
        if epoch is None:
            raise LunscopeError(self._control.status.message or "no load runs")
        return {"duration_s": epoch.duration_s, "measured": measured_document(epoch.split)}

    def _stop(self, *, verify: bool) -> None:
        self._control.stop(verify=verify)

    def _report_end(self) -> None:
        while not self._control.wait(_POLL_S):
            if self._stopped.is_set():
                return
        self.report()

    def report(self) -> None:
        """Send the result of the load that has ended, once."""
        result = self._control.result()
        if result is None or result is self._reported:
            return
        self._reported = result
        self._send(encode("result", document=run_document(result), measured=measured_document(result.total)))

    def status(self) -> bytes:
        """Return the state of the load as a line."""
        status = self._control.status
        return encode(
            "status",
            state=str(status.state),
            message=status.message,
            elapsed_s=round(status.elapsed_s, 3),
            errors=status.errors,
            outstanding=len(status.outstanding),
            progress=status.progress,
        )

    @property
    def is_idle(self) -> bool:
        """Whether there is no load."""
        return self._control.status.state is LoadState.IDLE


def _given(frame: Frame) -> dict[str, TargetIdentity | None]:
    """Read what an agent of an earlier connection answered, which the controller sends to the next one.

    Raises:
        FrameError: it is no such thing.
    """
    try:
        return convert(frame.get("given", {}), dict[str, TargetIdentity | None])
    except ValidationError as error:
        raise FrameError(f"a frame with damaged permissions: {error}") from None


def measured_document(split: Split) -> dict[str, object]:
    """Write what adds up over hosts: counts, sums and histograms of each direction."""
    return {
        name: {
            "ios": each.ios,
            "bytes": each.bytes,
            "errors": each.errors,
            "latency_sum_ns": each.latency_sum_ns,
            "least_ns": each.least_ns,
            "largest_ns": each.largest_ns,
            "peak_sum_ns": each.peak_sum_ns,
            "peak_seconds": each.peak_seconds,
            "buckets": each.buckets.tolist(),
            "counts": each.counts.tolist(),
        }
        for name, each in (("read", split.read), ("write", split.write))
    }
