"""Metrics of the load: counters and histogram of a run, what is true only while it runs, and the file."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.metrics.loads import LoadMetrics
from collectors.model import Source, Step
from engine.errors import RefusedError, UsageError
from engine.job.spec import BlockShare, Knobs
from tests import needs
from tests.unit.load_steps import Stretch, recorded_run
from tests.unit.metrics.test_families import series
from tui.headless.metered import metered
from tui.headless.metrics import require_textfile

KNOBS = Knobs(queue_depth=4, blocks=(BlockShare(4096, 50.0), BlockShare(8192, 50.0)), rate_iops=100.0)
STEPS = recorded_run([Stretch(3, 1000, 1_000_000), Stretch(3, 500, 4_000_000)], idle=0).steps
ENDED = recorded_run([Stretch(3, 1000, 1_000_000)], idle=2).steps


def text_of(steps: tuple[Step, ...], knobs: Knobs | None = KNOBS) -> str:
    metrics = LoadMetrics(lambda: knobs)
    for step in steps:
        metrics.add(step)
    return metrics.text().decode()


def test_counters_histogram_and_knobs_of_a_run() -> None:
    found = series(text_of(STEPS))
    row = '{target="/dev/x",operation="read"}'
    ios = found[f"lunscope_load_ios_total{row}"]
    assert ios > 3000
    assert found[f"lunscope_load_latency_seconds_count{row}"] == ios
    buckets = {name: value for name, value in found.items() if name.startswith("lunscope_load_latency_seconds_bucket")}
    (below,) = (value for name, value in buckets.items() if 'operation="read"' in name and 'le="0.002097151"' in name)
    assert below == 3000
    slow = ios - 3000
    assert found[f"lunscope_load_latency_seconds_sum{row}"] == pytest.approx(3.0 + 0.004 * slow)
    assert found["lunscope_load_running"] == 1
    assert found["lunscope_load_queue_depth"] == 4
    assert found['lunscope_load_block_bytes{operation="read"}'] == 6144
    assert found["lunscope_load_rate_limit_ios_per_second"] == 100
    assert found['lunscope_load_epoch{target="/dev/x"}'] == 1
    assert not any("service" in name for name in found), "missing is not 0"


def test_when_it_is_over_the_counters_stay_and_the_rest_goes() -> None:
    found = series(text_of(ENDED))
    assert found["lunscope_load_running"] == 0
    assert found['lunscope_load_ios_total{target="/dev/x",operation="read"}'] == 3000
    assert not [name for name in found if "queue_depth" in name or "outstanding" in name or "knobs" in name]


class Steps:
    """A source of these steps."""

    seekable = False
    interval_s = 1.0

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps

    def steps(self, stop: threading.Event) -> Iterator[Step]:  # noqa: ARG002 - as any source
        return iter(self._steps)

    def close(self) -> None:
        """Close nothing."""


def test_the_file_is_replaced_with_every_step_and_says_at_the_end_that_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "load.prom"
    source: Source = metered(Steps(STEPS), path, lambda: KNOBS, on_screen=False)
    seen = []
    for _ in source.steps(threading.Event()):
        seen.append(path.read_text())
    source.close()
    assert len(set(seen)) == len(seen) == len(STEPS)
    assert "lunscope_load_running 0\n" in path.read_text()
    require_textfile(path)
    assert [each.name for each in tmp_path.iterdir()] == ["load.prom"]
    (tmp_path / "other.prom").write_text("mine")
    with pytest.raises(RefusedError, match="not written by lunscope"):
        require_textfile(tmp_path / "other.prom")
    with pytest.raises(UsageError, match=r"--metrics-textfile .*end in \.prom"):
        require_textfile(tmp_path / "load.txt", "--metrics-textfile")


@needs.promtool
def test_promtool_finds_nothing_to_improve() -> None:
    tool = needs.prometheus_tool("promtool")
    assert tool is not None
    done = subprocess.run([tool, "check", "metrics"], input=text_of(STEPS), capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr) == ""
