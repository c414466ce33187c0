"""After the screens: the summary of the last load, and the exit even if storage does not respond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.backend.outstanding import given_up_text
from engine.running.control import LoadControl
from tui.headless.leaving import leave
from tui.options.watching import recording_exit
from tui.process.standard_streams import say

if TYPE_CHECKING:
    from collectors.sources.recorder import RecordingSource
    from engine.events import Event
    from tui.sweep.series import SessionGroup, SweepSeries


def sum_up(
    control: LoadControl,
    recording: RecordingSource | None,
    code: int,
    sweeps: SweepSeries,
    events: Sequence[Event] = (),
) -> int:
    """Print the result and the outstanding I/Os of the last load; returns the exit code.

    The events that came while it ran are printed below it, by cause. Where sweeps or searches were started
    from the screen, what they say is printed instead.
    With I/Os outstanding this ends the process instead, as a normal exit would wait for them.
    """
    if sweeps.groups:
        return sum_up_series(sweeps, control, recording, code)
    result = control.result()
    if result is not None:
        from collectors.reports.run_events import events_between  # noqa: PLC0415 (slow to import; most leave without)
        from tui.headless.run_output import print_result  # noqa: PLC0415

        begun_ns = result.about.started_ns
        print_result(result, events_between(events, begun_ns, result.ended_ns) if begun_ns else ())
        code = code or int(result.is_damaged or result.ended_in_stall or result.missed_steady)
    return _leave_or_return(control, recording, code)


def sum_up_series(
    series: SweepSeries,
    control: LoadControl,
    recording: RecordingSource | None,
    code: int,
    *,
    is_measured_for: bool = False,
) -> int:
    """Print what sweeps and searches say, and the outstanding I/Os of their load; returns the exit code as `sum_up`.

    With `is_measured_for` the first of them is what the command was for: if it is not complete the code is not 0.
    """
    for number, group in enumerate(series.groups):
        is_complete = _print_group(group, control.status.targets)
        if is_measured_for and number == 0:
            failure = next((each.failure for each in group.sessions if each.failure is not None), None)
            code = code or (0 if failure is None else failure.exit_code) or int(not is_complete)
    result = control.result()
    if result is not None and is_measured_for:
        code = code or int(bool(result.failed_ios or result.ended_in_stall))
    return _leave_or_return(control, recording, code)


def _print_group(group: SessionGroup, targets: tuple[str, ...]) -> bool:
    """Print what measurements say that were asked for together; returns whether all was measured."""
    from collectors.advice.measured import answer_sections  # noqa: PLC0415 (as above)
    from tui.headless.shown import print_sections  # noqa: PLC0415

    finished = [session.finish() for session in group.sessions]
    results = [result for result in finished if result is not None]
    for session in group.sessions:
        if session.failure is not None:
            say(str(session.failure))
    print_sections(answer_sections(group.order.answered(results, targets)))
    return group.order.is_complete(results)


def _leave_or_return(control: LoadControl, recording: RecordingSource | None, code: int) -> int:
    code, result = recording_exit(recording, code), control.result()
    if control.outstanding:
        if result is None or not result.outstanding:
            say(given_up_text(control.outstanding))
        leave(code or 1)
    return code
