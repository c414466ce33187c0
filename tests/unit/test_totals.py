"""Counters cleared per level, and the same totals from a recording since the mark."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.reports.totals.cleared import ClearedCounters
from collectors.reports.totals.level import WHOLE_HOST, CountLevel, CountSubject
from collectors.session.writer import SessionWriter
from collectors.sources.live import WHOLE_TOPOLOGY_S, LiveSource
from engine.events import Event, EventKind
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi
from tui.cli import run_cli


def counters(reads: int, read_sectors: int, writes: int, write_sectors: int) -> tuple[int, ...]:
    """Fields of diskstats."""
    return (reads, 0, read_sectors, 0, writes, 0, write_sectors, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def test_levels_are_cleared_apart_and_a_recording_has_the_same_totals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=1).build()
    boot_id = kernel.procfs / "sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True, exist_ok=True)
    boot_id.write_text("this one\n")
    cleared, file = ClearedCounters(), tmp_path / "a.luns"

    def count(name: str, *values: int) -> None:
        kernel.count(name, counters(*values))

    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=WHOLE_TOPOLOGY_S)
    steps = source.steps(StopFlag())
    with SessionWriter(file) as writer:
        for name in ("sda", "sdb", "dm-0"):
            count(name, 10, 80, 1, 8)
        kernel.write_diskstats()
        samples = [step.current for step in itertools.islice(steps, 2)]
        graph = samples[-1].topology.graph
        keys = {path.name: path.key for path in graph.paths} | {lun.name: lun.key for lun in graph.luns}
        path, lun = (CountSubject(CountLevel.PATH, keys["sda"], "sda"), CountSubject(CountLevel.LUN, keys["dm-0"], "m"))
        port = CountSubject(CountLevel.PORT, graph.ports[1].key, "host1")
        target = CountSubject(CountLevel.TARGET, graph.targets[1].key, graph.targets[1].name)
        for sample in samples:
            writer.write(sample)
            cleared.take(sample)
        for subject in (path, port, target):
            cleared.clear(subject)
        writer.add_event(Event.now(EventKind.NOTE, "before the change", **path.mark))
        for name, reads in (("sda", 30), ("sdb", 14), ("dm-0", 34)):
            count(name, reads, 8 * reads, 5, 40)
        kernel.write_diskstats()
        for step in itertools.islice(steps, 2):
            writer.write(step.current)
            cleared.take(step.current)
        cleared.clear(lun)
    source.close()
    totals = [cleared.totals(subject) for subject in (path, port, target, lun, WHOLE_HOST)]
    found = [None if one is None else (one.reads, one.writes) for one in totals]
    assert found == [(20, 4), (4, 4), (4, 4), (0, 0), None]
    assert totals[0] is not None
    assert (totals[0].read_bytes, totals[0].write_bytes) == (20 * 8 * 512, 4 * 8 * 512)
    assert totals[0].max_latency_ns is None, "only exact time knows it"
    for mark in ("before the change", "sda", "last"):
        assert run_cli(["report", "-d", "-L", "-H", "-T", "--from", str(file), "--since-mark", mark, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        rows = {row["name"] or row["level"]: (row["reads"], row["writes"]) for row in document["rows"]}
        assert rows == {
            "dm-0 mpath0": (24, 4),
            "sda": (20, 4),
            "sdb": (4, 4),
            "host0": (20, 4),
            "host1": (4, 4),
            graph.targets[0].name: (20, 4),
            graph.targets[1].name: (4, 4),
            "host": (24, 8),
        }
    where = ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]
    count("sda", 37, 8 * 37, 6, 48)
    kernel.write_diskstats()
    assert run_cli(["report", "-L", "-T", "--since", str(file), "--json", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["name"] or row["level"]: (row["reads"], row["writes"]) for row in document["rows"]}
    assert rows == {"sda": (7, 1), graph.targets[0].name: (7, 1), "host": (7, 1)}
    boot_id.write_text("another\n")
    assert run_cli(["report", "--since", str(file), *where]) == 2
    assert "of another host or boot" in capsys.readouterr().err
    assert run_cli(["report", "--since", str(file), "--from", str(file)]) == 2
    assert "up to now" in capsys.readouterr().err
    assert run_cli(["report", "--from", str(file), "--since-mark", "sda"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("since 'before the change', ")
    assert [line.split()[:2] for line in lines[2:]] == [["LUN", "dm-0"], ["the", "host"]]
    assert run_cli(["report", "--from", str(file), "--since-mark", "nothing"]) != 0
    assert "the last ones are 'before the change'" in capsys.readouterr().err
    assert run_cli(["report", "--since-mark", "last", "5"]) != 0
    assert "give --from FILE" in capsys.readouterr().err
