"""The report as people and programs read it: golden text and a golden JSON line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.model import Rows, Sample, Step, Topology
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_json, report_line, report_text
from collectors.session.writer import SessionWriter
from engine.events import Event, EventKind
from tests.unit import raw_samples as raw
from tui.cli import run_cli


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


WHO = raw.rows("vda", "nvme0n1", "vdb")
HOST = raw.topology(WHO)


def chain(*samples: Sample) -> list[Step]:
    return [Step(previous, current) for previous, current in zip((None, *samples), samples, strict=False)]


def run() -> list[Step]:
    """Three samples a second apart: vda sampled as busy, nvme0n1 by counters in the second interval only, vdb idle."""
    vda = {
        "reads": 1_000,
        "read_sectors": 8_000,
        "read_ms": 8_000,
        "driver_in_flight_sum": 2_000,
        "driver_in_flight_samples": 1_000,
        "driver_busy_samples": 500,
        "driver_in_flight_peak": 6,
    }
    later = {name: value * 3 for name, value in vda.items()} | {"driver_in_flight_peak": 4}
    nvme = {"writes": 10, "write_sectors": 20_480, "write_ms": 125, "busy_ms": 40}
    return chain(
        raw.sample(0, disks=raw.disks(WHO, raw.NO_SAMPLES, {}, {}), topology=HOST),
        raw.sample(1, disks=raw.disks(WHO, vda, {}, {}), topology=HOST),
        raw.sample(2, disks=raw.disks(WHO, later, nvme, {}), topology=HOST),
    )


GOLDEN = """\
Linux 6.18.44 (lab)  2025-11-21  x86_64  (4 CPU)
~ estimate, : kernel counters, + at least, - not known; exact bears no mark

04:40:01 disk         IOPS       B/s   await       Q        S   aqu-sz   Busy
                       1/s     KiB/s      ms      ms       ms               %
04:40:01 vda        1000.0    4000.0   8.000   6.000~   2.000~     8.0   50.0~
04:40:02 vda        2000.0    8000.0   8.000   7.000~   1.000~    16.0   50.0~
04:40:02 nvme0n1      10.0   10240.0   12.50       -        -      0.1    4.0:

Average: disk         IOPS       B/s   await       Q        S   aqu-sz   Busy
                       1/s     KiB/s      ms      ms       ms               %
Average: vda        1500.0    6000.0   8.000   6.667~   1.333~    12.0   50.0~
Average: nvme0n1       5.0    5120.0   12.50       -        -      0.1    2.0:
"""


def test_text_for_people() -> None:
    lines = list(report_text(run()))
    assert lines == GOLDEN.splitlines()


def test_reads_and_writes_apart() -> None:
    lines = list(report_text(run(), ReportOptions(split=True)))
    assert lines[3].split() == [
        *("04:40:01", "disk", "r/s", "w/s", "rB/s", "wB/s"),
        *("r", "await", "w", "await", "Q", "S", "aqu-sz", "Busy"),
    ]
    assert lines[5].split()[:8] == ["04:40:01", "vda", "1000.0", "0.0", "4000.0", "0.0", "8.000", "-"]


def test_count_ends_the_report_with_its_averages() -> None:
    lines = list(report_text(run(), ReportOptions(count=1)))
    assert sum(line.startswith("04:40") for line in lines) == 2
    assert lines[-1].split()[:3] == ["Average:", "vda", "1000.0"]


def test_averages_are_of_the_whole_time_not_of_the_lines() -> None:
    def row(reads: int, read_ms: int) -> dict[str, int]:
        return {"reads": reads, "read_ms": read_ms}

    who = raw.rows("vda")
    steps = chain(
        *(
            raw.sample(at, disks=raw.disks(who, row(reads, read_ms)))
            for at, reads, read_ms in ((0, 0, 0), (1, 1_000, 1_000), (10, 1_010, 2_000))
        )
    )
    average = list(report_text(steps))[-1].split()
    assert average[2] == "101.0"
    assert average[4] == "1.980"


def test_averages_outlive_wraps_resets_and_late_comers() -> None:
    who, both = raw.rows("vda"), raw.rows("vda", "vdb")
    steps = chain(
        raw.sample(0, disks=raw.disks(who, {"reads": 100, "read_ms": (1 << 32) - 50})),
        raw.sample(1, disks=raw.disks(who, {"reads": 110, "read_ms": 50})),
        raw.sample(2, disks=raw.disks(both, {"reads": 5, "read_ms": 5}, {"writes": 1_000})),
        raw.sample(3, disks=raw.disks(both, {"reads": 35, "read_ms": 305}, {"writes": 1_008, "write_ms": 80})),
    )
    vda, vdb = (line.split() for line in list(report_text(steps))[-2:])
    assert (vda[1], vda[2], vda[4]) == ("vda", "20.0", "10.00")
    assert (vdb[1], vdb[2], vdb[4]) == ("vdb", "8.0", "10.00")


@pytest.mark.parametrize(
    ("first_ios", "split"),
    [pytest.param(1_000, ["-", "-"], id="of half of the I/Os"), pytest.param(50, ["0.000~", "8.000~"], id="of most")],
)
def test_samples_over_part_of_the_report_do_not_speak_for_all_of_it(first_ios: int, split: list[str]) -> None:
    """The I/Os before the samples took 1 ms each, those that the samples describe 8."""
    who = raw.rows("vda")
    busy_samples = {"driver_in_flight_samples": 1_000, "driver_busy_samples": 1_000, "driver_in_flight_sum": 8_000}
    begun = {"reads": first_ios, "read_ms": first_ios, "busy_ms": 100, **raw.NO_SAMPLES}
    ended = {**begun, "reads": first_ios + 1_000, "read_ms": first_ios + 8_000, "busy_ms": 200, **busy_samples}
    steps = chain(*(raw.sample(tick, disks=raw.disks(who, row)) for tick, row in enumerate(({}, begun, ended))))
    lines = list(report_text(steps))
    assert lines[-5].split()[-1] == "100.0~"
    assert lines[-1].split()[-1] == "10.0:"
    assert lines[-1].split()[5:7] == split


def test_an_interval_without_busy_time_leaves_that_of_the_others() -> None:
    """The second of three seconds claims more busy time than it has (io_ticks of 6.1 and 6.12); no I/O is left out."""
    who = raw.rows("vda")
    busy_ms = (0, 500, 5_500, 6_200)
    counted = ({"reads": 100 * at, "read_ms": 300 * at, "busy_ms": ms} for at, ms in enumerate(busy_ms))
    lines = list(report_text(chain(*(raw.sample(at, disks=raw.disks(who, row)) for at, row in enumerate(counted)))))
    assert [line.split()[-1] for line in lines if " vda " in line] == ["50.0:", "-", "70.0:", "60.0:"]
    assert lines[-1].split()[2] == "100.0"


def test_a_disk_that_is_new_to_its_figures_has_the_share_of_its_own_time() -> None:
    """Its busy time is unknown in the first of the two seconds in which it was there."""
    one, both = raw.rows("vda"), raw.rows("vda", "vdb")
    vda = {"reads": 1}
    steps = chain(
        raw.sample(0, disks=raw.disks(one, vda)),
        raw.sample(1, disks=raw.disks(both, vda, {"reads": 0})),
        raw.sample(2, disks=raw.disks(both, vda, {"reads": 10, "read_ms": 900, "busy_ms": 3_000})),
        raw.sample(3, disks=raw.disks(both, vda, {"reads": 30, "read_ms": 1_700, "busy_ms": 3_800})),
    )
    vdb = list(report_text(steps))[-1].split()
    assert (vdb[1], vdb[2], vdb[-1]) == ("vdb", "15.0", "80.0:")


def test_a_gap_is_said_and_not_averaged() -> None:
    steps = run()
    steps[2] = Step(None, steps[2].current)
    lines = list(report_text(steps))
    assert "04:40:02 (gap)" in lines
    assert lines[-1].split()[:3] == ["Average:", "vda", "1000.0"]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_an_interval_longer_than_the_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: list[str]
) -> None:
    path = tmp_path / "a.luns"
    with SessionWriter(path) as writer:
        for step in run():
            writer.write(step.current)
    assert run_cli(["report", "--from", str(path), "-d", "60", *as_json]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        f"lunscope: {path}: lasts 2 s, no interval of 60 s: give a shorter one\n",
    )
    assert run_cli(["report", "--from", str(path), "-d", "2", *as_json]) == 0
    assert "vda" in capsys.readouterr().out


def test_headers_come_again_after_some_lines_and_when_devices_change() -> None:
    who, other = raw.rows("vda"), raw.rows("vda", "vdb")
    busy = [raw.sample(at, disks=raw.disks(who, {"reads": at})) for at in range(6)]
    changed = raw.sample(6, disks=raw.disks(other, {"reads": 6}, {}))

    def headers(every: int) -> int:
        return sum(" IOPS " in line for line in report_text(chain(*busy, changed), ReportOptions(header_every=every)))

    assert headers(100) == 3
    assert headers(2) == 5


def test_events_stand_between_the_lines() -> None:
    steps = run()
    event = Event(EventKind.HOTPLUG, "vdc added\x1b[2J", 0, 0)
    current = steps[1].current
    marked = Sample(current.time_ns, current.monotonic_ns, HOST, current.tables, events=(event,))
    lines = list(report_text([steps[0], Step(steps[0].current, marked)]))
    assert r"04:40:01 << vdc added\x1b[2J >>" in lines


def test_hostile_names_and_times_cannot_break_the_report() -> None:
    evil = Rows(("k\x1b",), ("\x1b]0;owned\a\u202e" + "x" * 500,))
    first, second = (
        Sample(time_ns, at * raw.SECOND_NS, Topology(), {"disk": raw.disks(evil, {"reads": at})})
        for at, time_ns in enumerate((2**63, -(2**70)))
    )
    steps = chain(first, second)
    text = list(report_text(steps))
    assert all(line.isprintable() for line in text)
    assert max(len(line) for line in text) < 160
    assert any(line.startswith("--:--:--") for line in text)
    (document,) = report_json(steps)
    assert json.loads(document)["time"] is None
    assert "\\u001b" not in document


def strict(document: str) -> dict[str, object]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    parsed: dict[str, object] = json.loads(document, parse_constant=refuse)
    return parsed


def test_the_golden_json_line() -> None:
    documents = list(report_json(run()))
    assert len(documents) == 2
    assert not any("\n" in document for document in documents)
    first, second = strict(documents[0]), strict(documents[1])
    assert {**first, "disks": first["disks"][:1]} == GOLDEN_JSON  # type: ignore[index]
    assert documents[0].startswith('{"schema":"lunscope.report/1","time":"2025-11-21T04:40:01.000+00:00",')
    assert list(first) == list(GOLDEN_JSON)
    for document in (first, second):
        assert [row["name"] for row in document["disks"]] == ["vda", "nvme0n1", "vdb"]  # type: ignore[attr-defined]


GOLDEN_JSON = {
    "schema": "lunscope.report/1",
    "time": "2025-11-21T04:40:01.000+00:00",
    "interval_s": 1.0,
    "tier": "kernel",
    "states_age_s": None,
    "looking": {"sampling_pct": 0.0, "programs_pct": None, "ns_per_io": None, "basis": None},
    "disks": [
        {
            "name": "vda",
            "id": "vda:8:0:1",
            "label": "",
            "wwid": "",
            "heat": 46.25,
            "iops": 1000.0,
            "reads_per_s": 1000.0,
            "writes_per_s": 0.0,
            "bytes_per_s": 4096000.0,
            "read_bytes_per_s": 4096000.0,
            "write_bytes_per_s": 0.0,
            "discards_per_s": 0.0,
            "flushes_per_s": 0.0,
            "read_merges_per_s": 0.0,
            "write_merges_per_s": 0.0,
            "await_ms": 8.0,
            "read_await_ms": 8.0,
            "write_await_ms": None,
            "queue_ms": 6.0,
            "tag_wait_ms": None,
            "service_ms": 2.0,
            "in_flight": 8.0,
            "in_flight_peak": 6.0,
            "stalled_ms": 0.0,
            "busy_pct": 50.0,
            "whole_per_s": None,
            "parts_per_io": None,
            "ios_below_ratio": None,
            "bytes_below_ratio": None,
            "read_bytes_per_io": 4096.0,
            "write_bytes_per_io": None,
            "p50_ms": None,
            "p99_ms": None,
            "p999_ms": None,
            "service_max_ms": None,
            "queue_p99_ms": None,
            "queue_max_ms": None,
            "max_ms": None,
            "tiers": {
                "queue_ms": "sampled",
                "service_ms": "sampled",
                "in_flight_peak": "sampled",
                "busy_pct": "sampled",
            },
        }
    ],
    "paths": [],
    "hbas": [],
    "target_ports": [],
    "whole_host": [],
    "tapes": [],
    "cgroups": [],
    "process_ios": [],
    "caches": [],
    "fleet": [],
    "nfs": [],
    "nfs_transports": [],
    "background": [],
}


def test_json_names_what_survives_renaming() -> None:
    steps = run()
    named = raw.topology(WHO, persistent_id="naa.6001")
    frame = derive(steps[0].current, raw.sample(1, disks=steps[1].current.tables["disk"], topology=named))
    assert '"id": "naa.6001"' in json.dumps(report_line(frame))
