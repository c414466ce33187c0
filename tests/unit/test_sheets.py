"""Sheets of LUNs, paths and ports over fake trees, what happens without paths, and histories from events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collectors.graph import Lun
from collectors.paths.event_groups import event_groups
from collectors.paths.queueing import without_paths
from collectors.reports.sheets.path_history import path_histories
from collectors.topology.state_changes import group_changes
from engine.events import Event, EventKind
from engine.job.cpu_list import cpus_of, format_cpus
from engine.replacing import replace
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_fc_disk, add_fc_host, add_nvme_controller, add_nvme_namespace
from tui.cli import run_cli

SECOND = 1_000_000_000


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=1, access=("active/optimized", "active/non-optimized")).build()
    for name in ("sda", "sdb"):
        kernel.set(name, "device/timeout", "30\n")
        kernel.set(name, "device/eh_timeout", "10\n" if name == "sda" else "20\n")
    return kernel


def shown(kernel: FakeKernel, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, str]]:
    """Titles and values of the facts of a sheet, by section; a missing one is its reason."""
    return {
        title: {one["title"]: one["value"] or f"- {one['reason']}" for one in found["facts"]}
        for title, found in sections(kernel, capsys, *arguments).items()
    }


def sections(kernel: FakeKernel, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    """Sections of a sheet by their title."""
    where = ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]
    assert run_cli(["scan", *arguments, "--json", *where]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lunscope.sheet/1"
    return {found["title"]: found for found in document["sections"]}


def test_links_of_udev_to_a_lun_and_where_a_port_is(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(kernel, capsys, "--lun", "mpath0")["LUN"]["by-id"].startswith("- udev has none")
    number = (kernel.sysfs / "block/sda/dev").read_text().strip()
    database = kernel.sysfs.parent / "run/udev/data"
    database.mkdir(parents=True)
    (database / f"b{number}").write_text("S:disk/by-id/wwn-0x6001\nS:disk/by-path/pci-0\nE:ID_BUS=scsi\n")
    assert shown(kernel, capsys, "--lun", "mpath0")["LUN"]["by-id"] == "/dev/disk/by-id/wwn-0x6001"
    port = shown(kernel, capsys, "--port", "host0")["HBA port"]
    assert port["NUMA node"].startswith("- the bus gives none")
    host = (kernel.sysfs / "class/scsi_host/host0").resolve()
    bus = next(folder for folder in host.parents if folder.name.startswith("0000:"))
    (bus / "numa_node").write_text("1\n")
    for interrupt, cpus in ((40, "0-1"), (41, "2,5")):
        (bus / "msi_irqs").mkdir(exist_ok=True)
        (bus / "msi_irqs" / str(interrupt)).write_text("msix\n")
        kernel.write_proc(f"irq/{interrupt}/effective_affinity_list", f"{cpus}\n")
    port = shown(kernel, capsys, "--port", "host0")["HBA port"]
    assert port["NUMA node"] == "1"
    assert port["interrupts"] == "2 interrupts on CPUs 0-2,5"


def test_queue_depths_of_all_paths_beside_the_limit_of_their_port(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.set("sda", "device/queue_depth", "64\n")
    (kernel.sysfs / "class/scsi_host/host0/can_queue").write_text("32\n")
    port = shown(kernel, capsys, "--port", "host0")["HBA port"]
    assert port["queue depths of its paths"] == "64 together, 2.00 times the limit"


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), ("0-x", ()), ("0-99999999", ())]
)
def test_lists_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert cpus_of(text) == cpus
    if cpus:
        assert format_cpus(cpus) == text


def test_timeouts_of_a_lun_are_those_of_its_paths(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = shown(kernel, capsys, "--lun", "mpath0")
    assert sheet["Timeouts"]["SCSI timeout"] == "30 s"
    assert sheet["Timeouts"]["eh_timeout"] == "10 s (sda); 20 s (sdb)"
    assert sheet["LUN"]["paths"] == "2 of 2 usable: 1 optimized + 1 non-optimized"
    assert sheet["Map"]["queue_if_no_path"] == "- the table of the map was not read: it needs root, on the host itself"
    assert sheet["Map"]["failback"].startswith("- multipathd did not answer")
    assert sheet["History"]["observed"].startswith("- nothing was observed")


def test_the_sheet_of_an_fc_path_and_its_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = FakeKernel(tmp_path)
    folder = add_fc_host(kernel, 3, "0x10000090fa000001")
    add_fc_disk(kernel, "sdx", folder, 3, target_wwpn="0x5006016000000001")
    kernel.add_class("fc_remote_ports", "rport-3:0-0", f"{folder}/rport-3:0-0/fc_remote_ports/rport-3:0-0",
                     dev_loss_tmo=60, fast_io_fail_tmo="off", port_state="Online")  # fmt: skip
    (kernel.sysfs / "class/fc_host/host3/statistics").mkdir()
    for name, value in (("port_type", "NPort (fabric via point-to-point)"), ("statistics/invalid_crc_count", "0x7")):
        kernel.set_class("fc_host", "host3", name, value)
    path = shown(kernel, capsys, "--path", "sdx")
    assert path["Storage"]["target port"] == "0x5006016000000001"
    assert (path["Timeouts"]["dev_loss_tmo"], path["Timeouts"]["fast_io_fail_tmo"]) == ("60 s", "off (never)")
    port = shown(kernel, capsys, "--port", "0x10000090fa000001")
    assert (port["Link"]["rate"], port["Link"]["port type"]) == ("32 Gbit", "NPort (fabric via point-to-point)")
    assert port["Error counters"] == {"frame errors": "7", "invalid crcs": "7"}
    target = shown(kernel, capsys, "--target-port", "0x5006016000000001")
    assert target["Target port"]["transport"] == "fc"
    assert target["Paths to it"]["paths"].startswith("1")


def test_timeouts_of_nvme_over_fabrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = FakeKernel(tmp_path)
    folders = [add_nvme_controller(kernel, number, "tcp", f"traddr=10.0.0.{number},trsvcid=4420") for number in (0, 1)]
    name = add_nvme_namespace(kernel, 1, folders, ("optimized", "inaccessible"))
    for number, loss in ((0, "600"), (1, "off")):
        values = {"ctrl_loss_tmo": loss, "reconnect_delay": "10", "kato": "5", "fast_io_fail_tmo": "off"}
        for file, value in values.items():
            kernel.set_class("nvme", f"nvme{number}", file, value)
    timeouts = shown(kernel, capsys, "--lun", name)["Timeouts"]
    assert timeouts["ctrl_loss_tmo"] == "600 s (nvme0c0n1); off (never) (nvme0c1n1)"
    assert (timeouts["reconnect_delay"], timeouts["kato"]) == ("10 s", "5 s")


@pytest.mark.parametrize(
    ("access", "words"),
    [
        (("inaccessible", "optimized", "optimized"), "1  2 optimized + 1 inaccessible  priority not known"),
        (("optimized", "inaccessible", "inaccessible"), "1  2 inaccessible + 1 optimized  priority not known"),
        (("inaccessible",) * 3, "1  inaccessible  priority not known"),
        (("optimized",) * 3, "1  optimized  priority not known"),
    ],
)
def test_an_ana_group_has_the_states_of_all_its_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], access: tuple[str, ...], words: str
) -> None:
    kernel = FakeKernel(tmp_path)
    name = add_nvme_namespace(kernel, 1, [add_nvme_controller(kernel, number) for number in range(3)], access)
    (line,) = sections(kernel, capsys, "--lun", name)["Groups of paths"]["lines"]
    assert line == f"{words}  nvme0c0n1 nvme0c1n1 nvme0c2n1"


@pytest.mark.parametrize("arguments", [["--lun", "sdz"], ["--port", "host9"], ["--lun", "a", "--path", "b"]])
def test_a_name_that_nothing_has(kernel: FakeKernel, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run_cli(["scan", *arguments, "--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]) != 0
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1
    assert "`lunscope scan` lists them" in error[0] or "give one of them" in error[0]


MAP = Lun("dm-0", "dm-0", "dm", features="queue_if_no_path", no_path_retry="12 chk", retry_interval_s=5)


@pytest.mark.parametrize(
    ("lun", "queues", "words"),
    [
        (MAP, True, "I/O waits about 60 s, then it fails (no_path_retry 12 checks, 5 s each)"),
        (replace(MAP, retry_interval_s=None), True, "for 12 checks of multipathd, then it fails"),
        (replace(MAP, no_path_retry="on"), True, "without limit (queue_if_no_path, no_path_retry queue)"),
        (replace(MAP, no_path_retry="counting"), True, "until multipathd's retries are over"),
        (replace(MAP, no_path_retry=""), True, "multipathd did not answer, which may have a limit"),
        (replace(MAP, features="none"), False, "I/O fails at once: the map has no queue_if_no_path"),
        (replace(MAP, features=""), None, "not known: the table of the map was not read"),
        (Lun("sda", "sda"), None, "no multipath"),
    ],
)
def test_what_happens_without_paths(lun: Lun, queues: bool | None, words: str) -> None:
    assert without_paths(lun).queues is queues
    assert words in without_paths(lun).text


def event(at_s: float, text: str, **data: str | int) -> Event:
    return Event(EventKind.HOTPLUG, text, round(at_s * SECOND), round(at_s * SECOND), data)


def change(at_s: float, name: str, *, usable: int) -> Event:
    verdict = "back" if usable else "lost"
    return event(at_s, f"path {name} of m {verdict}: a -> b", path=name, lun="m", usable=usable,
                 port="host0", change=verdict, now="offline")  # fmt: skip


def test_history_of_paths_and_maps() -> None:
    events = [
        change(110, "sda", usable=0),
        change(115, "sda", usable=1),
        change(120, "sdb", usable=1),
        event(130, "paths: 40 lost", lost=40, lost_paths="sda sdc"),
        event(131, "m uses another group", lun="m", switched="dm-0", paths="sdb"),
        event(140, "path sdd: limit of commands 32 -> 16", path="sdd", usable=1, queue_limit=16),
        change(900, "sde", usable=0),
    ]
    found = path_histories(events, 100 * SECOND, 160 * SECOND)
    sda, sdb = found.paths["sda"], found.paths["sdb"]
    assert (sda.failures, sda.last_failure_ns, sda.total_down_ns(160 * SECOND)) == (2, 130 * SECOND, 35 * SECOND)
    assert sda.down_since_ns == 130 * SECOND
    assert (sdb.failures, sdb.down_ns) == (0, 20 * SECOND), "it was down before it was observed"
    assert found.switches["dm-0"].count == 1
    assert set(found.paths) == {"sda", "sdb", "sdc"}
    assert found.flaps_per_hour(2) == pytest.approx(120)


def test_events_with_one_cause_are_one_line() -> None:
    events = [change(at, name, usable=0) for at, name in ((1, "sda"), (1.5, "sdb"), (2, "sdc"), (60, "sda"))]
    events.insert(2, event(1.6, "policy of m changed", lun="m"))
    groups = event_groups(events)
    assert [group.text for group in groups] == [
        "host0: 3 paths lost: offline (sda, sdb, sdc)",
        "policy of m changed",
        "path sda of m lost: a -> b",
    ]
    assert [len(group.events) for group in groups] == [3, 1, 1]


def test_a_map_that_uses_another_group_is_one_event(kernel: FakeKernel) -> None:
    from collectors.tables.block.counters import BlockCollector
    from collectors.topology.device_mapper import parse_map, with_map_states
    from collectors.topology.scanner import TopologyScanner

    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    devices, graph = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    table = "1 queue_if_no_path 1 alua 2 1 service-time 0 1 1 8:0 1 service-time 0 1 1 8:16 1"

    def states(first: str, second: str) -> str:
        return f"2 0 0 0 2 1 {first} 0 1 0 8:0 A 0 {second} 0 1 0 8:16 A 0"

    maps = [parse_map(table, states(*letters)) for letters in ("AE", "EA")]
    assert maps[0] is not None
    assert maps[1] is not None
    before, now = (with_map_states(graph, devices, {(253, 0): one}) for one in maps if one is not None)
    assert [path.group_state for path in now.paths] == ["enabled", "active"]
    ((text, data),) = group_changes(before, now, devices)
    assert text == "mpath0 uses another group of paths: sdb"
    assert data["switched"] == "dm-0"
    assert list(group_changes(now, now, devices)) == []
