"""What the devices under a run's targets did: which samples count, the text and the JSON."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest

from collectors.advice.finding import FindingKind
from collectors.advice.of_state import findings_below
from collectors.advice.point_devices import point_document
from collectors.kernel.cpu_limits import CpuLimits
from collectors.model import Device, Step, Topology
from collectors.reports.documents.run import below_sections, run_report
from collectors.reports.run_devices import RunDevices, RunSamples, devices_document
from collectors.reports.run_events import run_events_document
from engine.events import Event, EventKind
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.results.result import About, EngineFacts
from tests.unit.documents.printed import shown
from tests.unit.raw_samples import SECOND_NS, disks, rows, sample

WHO = rows("sda", "sdb")
TOPOLOGY = Topology(
    {
        key: Device(key, name, "disk", 8, minor, size_bytes=1 << 30, friendly_name=f"\x1b{name}")
        for key, name, minor in zip(WHO.keys, WHO.names, (0, 16), strict=True)
    }
)
NUMBER = os.makedev(8, 16)


def about(*devices: tuple[int, ...]) -> About:
    names = tuple(f"/data/{number}" for number in range(len(devices)))
    return About(JobSpec(), EngineFacts("uring", "", ()), names, (), (), "runtime", 3.0, devices=devices)


def moment(at_s: float, ios: int) -> Step:
    """Each I/O of sdb reads 4 KiB and takes 2 ms; sda does ten times as many, which are not the run's."""
    busy = {"reads": ios, "read_sectors": 8 * ios, "read_ms": 2 * ios, "busy_ms": ios}
    other = {name: 10 * value for name, value in busy.items()}
    return Step(None, sample(at_s, disks=disks(WHO, other, busy), topology=TOPOLOGY))


def observed(*moments: tuple[float, int], begin_s: float = 2.0) -> RunSamples:
    """A run that begins at a moment; everything before that moment is another one's."""
    samples, taken = RunSamples(), [moment(*one).current for one in moments]
    steps = [Step(None, taken[0]), *(Step(before, after) for before, after in pairwise(taken))]
    for step in steps:
        if step.current.monotonic_ns >= begin_s * SECOND_NS > (step.previous or taken[0]).monotonic_ns:
            samples.begin(round(begin_s * SECOND_NS))
        samples.observe(step)
    return samples


def below(samples: RunSamples, *devices: tuple[int, ...]) -> RunDevices:
    found = samples.below(about(*devices), Path("/nowhere"))
    assert found is not None
    return found


MOMENTS = (1.0, 0), (1.9, 900), (2.1, 1000), (3.1, 1300), (4.1, 1500)


def test_only_samples_after_the_begin_count() -> None:
    found = below(observed(*MOMENTS), (NUMBER,))
    assert (found.elapsed_s, found.samples) == (2.0, 3)
    table = found.tables["disks"]
    assert table.rows.names == ("sdb",)
    assert table.value("iops", 0) == 250
    assert table.value("bytes_per_s", 0) == 250 * 4096
    assert table.value("await_ms", 0) == 2
    assert table.value("in_flight", 0) == 0.5
    assert table.value("busy_pct", 0) == 25


def test_nothing_counts_after_the_end() -> None:
    samples = observed(*MOMENTS)
    samples.end()
    samples.observe(Step(moment(4.1, 1500).current, moment(9.1, 9000).current))
    assert below(samples, (NUMBER,)).elapsed_s == 2.0


def devices_text(devices: RunDevices | None) -> str:
    return shown(below_sections({"devices": devices_document(devices)}))


def test_with_less_than_two_samples_there_is_nothing() -> None:
    samples = observed((1.0, 0), (2.1, 1000))
    assert samples.below(about((NUMBER,)), Path("/nowhere")) is None
    assert devices_document(None) is None
    assert "Not sampled: the run was too short." in devices_text(None)


def test_a_quota_is_known_without_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, read = tmp_path / "sys/fs/cgroup/few", CpuLimits.now
    monkeypatch.setattr(
        "collectors.reports.run_devices.CpuLimits.now", lambda: read(str(tmp_path / "proc"), str(tmp_path / "sys"))
    )
    files = {tmp_path / "proc/self/cgroup": "0::/few\n", group / "cpu.max": "30000 100000\n"}
    for file, text in (files | {group / "cpu.stat": "nr_periods 10\nnr_throttled 5\n"}).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    samples = observed((1.0, 0), (2.1, 1000))
    (group / "cpu.stat").write_text("nr_periods 30\nnr_throttled 24\n")
    samples.end()
    devices = below(samples, (NUMBER,))
    assert devices_document(devices) is point_document(devices) is None
    (found,) = (each for each in findings_below(devices, None, ()) if each.kind is FindingKind.CPU_LIMIT)
    assert found.about == ("/few",)


def test_the_document_has_a_tier_for_each_main_figure_and_null_for_what_is_not_known() -> None:
    document = devices_document(below(observed(*MOMENTS), (NUMBER,), (), (NUMBER,)))
    assert document is not None
    assert {name: document[name] for name in ("elapsed_s", "samples", "tier", "paths", "hbas")} == {
        "elapsed_s": 2.0,
        "samples": 3,
        "tier": "kernel",
        "paths": [],
        "hbas": [],
    }
    (disk,) = json.loads(json.dumps(document, allow_nan=False))["disks"]
    assert (disk["name"], disk["targets"]) == ("sdb", ["/data/0", "/data/2"])
    assert (disk["iops"], disk["await_ms"], disk["queue_ms"], disk["service_ms"]) == (250, 2, None, None)
    tiers = {name: disk["tiers"][name] for name in ("iops", "bytes_per_s", "await_ms", "in_flight", "busy_pct")}
    assert set(tiers.values()) == {"kernel"}
    assert (disk["tiers"]["queue_ms"], disk["tiers"]["service_ms"]) == ("none", "none")


def test_the_text_fits_and_says_whose_ios_they_are() -> None:
    text = devices_text(below(observed(*MOMENTS), (NUMBER,)))
    assert "Over 2.0 s, with all I/O of this host on them; tier: kernel." in text
    _, table = text.split("Disks:\n")
    titles, units, row, _, legend = table.splitlines()
    assert titles.split() == ["disk", "Q", "S", "await", "Busy", "aqu-sz", "IOPS", "B/s"]
    assert units.split() == ["ms", "ms", "ms", "%", "1/s", "KiB/s"]
    assert row.split()[-9:-2] == ["-", "-", "2.000:", "25.0:", "0.5", "250.0", "1000.0"]
    assert "\x1b" not in row
    assert "not known" in legend


def test_targets_in_memory_have_no_disk() -> None:
    assert "No disk that has counters." in devices_text(below(observed(*MOMENTS), ()))


def test_what_happened_during_the_run_is_in_its_result_by_cause() -> None:
    def lost(at_s: float, path: str) -> Event:
        data = {"path": path, "port": "host0", "now": "running, standby", "change": "lost"}
        return Event(EventKind.HOTPLUG, f"path {path} lost", int(at_s * SECOND_NS), int(at_s * SECOND_NS), data)

    def steps(*happened: Event) -> RunSamples:
        samples = RunSamples()
        samples.begin(2 * SECOND_NS)
        taken = [moment(at_s, 0).current for at_s in (2.1, 3.1, 4.1)]
        taken[2] = replace(taken[2], events=happened)
        for before, after in pairwise(taken):
            samples.observe(Step(before, after))
        return samples

    own = Event(EventKind.LOAD, "load started", 3 * SECOND_NS, 3 * SECOND_NS)
    before = lost(1.0, "sdz")
    samples = steps(lost(3.6, "sdb"), before, own, lost(3.5, "sda\x1b"), lost(3.7, "sdc"))
    assert [event.data["path"] for event in samples.events] == ["sda\x1b", "sdb", "sdc"]
    (group,) = run_events_document(samples.events)
    assert str(group["text"]).startswith("host0: 3 paths lost: running, standby (sda")
    assert "\x1b" not in json.dumps(group)
    assert (group["kind"], len(group["events"])) == ("hotplug", 3)  # type: ignore[arg-type]
    assert run_events_document(()) == []
    report = run_report(Path("run.json"), {"events": json.loads(json.dumps(run_events_document(samples.events)))})
    section = next(section for section in report.sections if section.title == "Events on the host")
    assert "host0: 3 paths lost" in str(section.blocks)
