"""The summary after the screens: sums over frames, at most ten lines of 80 columns, nothing that commands."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.graph import Graph, Path
from collectors.model import Frame, FrameTable, HostFacts, Rows, Tier, Topology
from collectors.session.time_format import clock_text
from engine.events import Event, EventKind
from engine.replacing import replace
from tui.app.watched import COLUMNS, MOST_LINES, Watched, summary_lines
from tui.text.safe import width_of

NAN = float("nan")


class File:
    """A recording that was written."""

    path = "/var/tmp/a.luns"
    size_bytes = 3 << 20
    trouble = ""

    def add_event(self, event: Event) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError


def frame(names: str, elapsed_s: float = 1.0, topology: Topology | None = None, **columns: list[float]) -> Frame:
    rows = Rows(tuple(f"{name}@1" for name in names.split()), tuple(names.split()))
    table = FrameTable(rows, {field_id: np.array(values) for field_id, values in columns.items()})
    host = HostFacts("db1", tier=Tier.EXACT)
    return Frame(0, 0, elapsed_s, {"disks": table}, topology or Topology(host=host))


def test_means_are_weighted_by_ios_and_peaks_are_the_largest() -> None:
    watched = Watched()
    watched.add(frame("a b", NAN, iops=[9, 9], await_ms=[9, 9], heat=[9, 9], busy_pct=[9, 9]))
    watched.add(frame("a b", 1, iops=[100, 0], await_ms=[1, NAN], heat=[50, 0], busy_pct=[40, 0], p99_ms=[5, NAN]))
    watched.add(frame("a b", 3, iops=[100, 0], await_ms=[5, NAN], heat=[50, 0], busy_pct=[80, 0], p99_ms=[3, NAN]))
    (only,) = watched.hottest()
    assert (only.name, only.await_ms, only.p99_ms, only.busy_pct) == ("a", 4.0, 5.0, 70.0)
    assert np.isnan(only.peak_ms)
    assert (watched.intervals, watched.seconds, watched.gaps) == (2, 4.0, 0)


def test_disks_that_come_and_go_keep_their_sums() -> None:
    watched = Watched()
    watched.add(frame("a b", iops=[10, 10], await_ms=[1, 2], heat=[5, 90], busy_pct=[5, 90], max_ms=[1, 70]))
    watched.add(frame("a", iops=[10], await_ms=[1], heat=[5], busy_pct=[5], max_ms=[2]))
    assert [disk.name for disk in watched.hottest()] == ["b", "a"]
    watched.add(
        frame("c b a", iops=[1, 30, 1], await_ms=[1, 6, 1], heat=[1, 90, 1], busy_pct=[0, 90, 0], max_ms=[9, 8, 9])
    )
    hot, *_ = watched.hottest()
    assert (hot.name, hot.await_ms, hot.peak_ms, hot.busy_pct) == ("b", 5.0, 70.0, 60.0)


def test_lines() -> None:
    paths = tuple(Path(f"k{n}", f"sd{n}", "lun", map_state="failed" if n < 6 else "active") for n in range(8))
    host = HostFacts("db1", tier=Tier.EXACT, notices=("no histograms here", "another"))
    shown = frame("a", topology=Topology(host=host, graph=Graph(paths=paths)), iops=[2], await_ms=[1.25], heat=[9],
                  busy_pct=[3], p99_ms=[7.5], max_ms=[31])  # fmt: skip
    watched = Watched()
    watched.add(replace(shown, losses={"unseen": 12}))
    watched.add(replace(shown, losses={"unseen": 12}, elapsed_s=NAN))
    events = [Event(kind, "x", 0, 0) for kind in (EventKind.PATH, EventKind.NOTE, EventKind.PATH)]
    assert summary_lines(watched, events, File()) == [
        "watched   db1 for 0:01, 1 interval, tier exact",
        "hottest   a                  await 1.25, p99 7.50, peak 31.0 ms, busy 3.0 %",
        "paths     6 failed now: sd0, sd1, sd2, sd3 and 2 more",
        "events    2 path, 1 note",
        f"          {clock_text(0)} x",
        "recording /var/tmp/a.luns (3.00M): lunscope replay shows it",
        "not seen  12 missed at issue; 1 interval missed",
        "          no histograms here (and 1 more: lunscope doctor)",
    ]


def test_nothing_is_said_before_the_first_interval() -> None:
    watched = Watched()
    assert summary_lines(watched, (), None) == []
    watched.add(frame("a", NAN))
    assert summary_lines(watched, (), None) == []


@pytest.mark.parametrize("name", ["\x1b[31mred", "日本語" * 20, "a\u202eb", "\ud800", "[bold]x[/]", "e\u0301" * 40])
def test_names_are_data(name: str) -> None:
    host = HostFacts(name, notices=(name * 9, name))
    graph = Graph(paths=tuple(Path(f"k{n}", name, "lun", state="offline") for n in range(9)))
    shown = frame("a b c d", topology=Topology(host=host, graph=graph), iops=[2] * 4, await_ms=[1] * 4, heat=[9] * 4,
                  busy_pct=[3] * 4, p99_ms=[9] * 4, max_ms=[9] * 4)  # fmt: skip
    shown = replace(
        shown, tables={"disks": replace(shown.tables["disks"], rows=Rows(("a", "b", "c", "d"), (name,) * 4))}
    )
    watched = Watched()
    watched.add(replace(shown, losses={"unseen": 1}))
    lines = summary_lines(watched, [Event(EventKind.NOTE, name, 0, 0)], File())
    assert len(lines) <= MOST_LINES
    for line in lines:
        assert width_of(line) <= COLUMNS
        assert line.isprintable()
