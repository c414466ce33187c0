"""The knee of a loop device whose number of requests is limited, over a file with a known service time.

The block layer gives a loop device nr_requests tags: as many I/Os reach the file at a time, the others wait for a tag.
With D tags and a service time of S whatever the depth, X(N) = min(N, D) / S and R(N) = max(S, N S / D).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import parse_axis
from engine.sweep.knee import Shape
from engine.sweep.plan import make_plan
from engine.sweep.runner import CurveResult, SweepRunner
from engine.sweep.text import summaries
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.slow_file import slow_file

pytestmark = [needs.loop, needs.fuse, pytest.mark.slow, pytest.mark.alone, pytest.mark.waits]

SERVICE_S = 0.015
LONG_SERVICE_S = 0.03
"""Few I/Os per second even at a high depth, which a busy host serves in time."""
RULE = StopRule(half_width=0.05, least_s=0.6, most_s=5.0, percent=50, most_for_percentile_s=0.6)
"""These need few I/Os for 5 %: they hardly differ."""


@pytest.fixture
def slow_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with slow_file(tmp_path / "slow", request.param) as file, ExitStack() as stack:
        yield Storage(tmp_path, stack).loop(backing=file, options=("--read-only", "--direct-io=on"))


def _swept(device: str, tags: int, axis: str) -> CurveResult:
    requests = Path("/sys/block", Path(device).name, "queue/nr_requests")
    before = requests.read_text()
    requests.write_text(str(tags))
    plan = make_plan(JobSpec(targets=(TargetSpec(device),)), (parse_axis(axis),), rule=RULE)
    control = LoadControl()
    try:
        control.arm(plan.armed, Permissions())
        control.turn(plan.first)
        control.start()
        result = SweepRunner(plan, control).run()
    finally:
        control.close()
        requests.write_text(before)  # whoever attaches the device next has it as it was
    assert (result.ended, result.troubles) == ("complete", ())
    return result.curves[0]


@pytest.mark.parametrize("slow_disk", [SERVICE_S], indirect=True)
def test_knee_is_at_the_number_of_requests(slow_disk: str) -> None:
    tags = 8
    curve = _swept(slow_disk, tags, "qd=1,4,8,32")
    answer = curve.answer
    if answer.shape is Shape.UNKNOWN and answer.host_busy_pct is not None:
        pytest.skip(f"needs processors with time left: {answer.words}, host busy {answer.host_busy_pct:.0f} %")
    assert answer.shape is Shape.KNEE
    assert answer.balance is not None
    assert answer.highest is not None
    assert tags / 2 <= answer.balance.found <= tags * 2
    assert tags / 2 <= answer.highest.found <= tags * 2
    assert answer.little is not None
    # An engine that waits for a processor keeps another number outstanding than asked, which the check must find.
    assert answer.little.holds or answer.host_busy_pct is not None, answer
    for point in summaries(curve.trials):
        # A busy machine serves later than this, never sooner.
        latency_ms = point.latency_ms("mean")
        assert latency_ms is not None
        assert point.iops <= 1.05 * min(point.load, tags) / SERVICE_S
        assert latency_ms >= 0.95e3 * SERVICE_S * max(1, point.load / tags)
    beyond = [trial.latency_ns for trial in curve.trials if trial.load == 32]
    below = [trial.latency_ns for trial in curve.trials if trial.load == tags]
    assert statistics.median(beyond) >= 2 * statistics.median(below)


@pytest.mark.parametrize("slow_disk", [LONG_SERVICE_S], indirect=True)
def test_same_disk_with_more_requests_has_no_knee_there(slow_disk: str) -> None:
    assert _swept(slow_disk, 128, "qd=1,4,16,32").answer.shape is Shape.RISING
