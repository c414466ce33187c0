"""NFS mounts: mountstats and sunrpc parsed, figures derived, verdicts, reported, recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from collectors.model import MISSING, Frame, Sample, Step
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.nfs.mountstats import parse_mountstats
from collectors.tables.nfs.reader import NfsCollector
from collectors.tables.nfs.schema import NFS_OPERATION, NFS_TRANSPORT, nfs_key
from collectors.tables.nfs.verdict import nfs_remarks
from engine.replacing import replace
from tests.fake_nfs import OTHERS, RDMA, TCP, UDP, FakeMount, write_mountstats, write_switch
from tests.unit import raw_samples as raw
from tests.unit.metrics.test_families import of_sample, series

V3 = FakeMount("/mnt/v3", version="3", transports=("tcp 894 1 2 0 4 35 34 1 311 6 17 12 26",))


def sample(at_s: int, procfs: Path, collector: NfsCollector, *mounts: FakeMount) -> Sample:
    write_mountstats(procfs, *mounts)
    return replace(raw.sample(at_s), tables=collector.read().tables)


def samples(procfs: Path, moments: Sequence[Sequence[FakeMount]], sysfs: Path | None = None) -> list[Sample]:
    collector = NfsCollector(str(procfs), str(sysfs or procfs / "no-sys"))
    return [sample(at, procfs, collector, *mounts) for at, mounts in enumerate(moments, start=1)]


def frame_of(procfs: Path, before: Sequence[FakeMount], now: Sequence[FakeMount], sysfs: Path | None = None) -> Frame:
    first, second = samples(procfs, (before, now), sysfs)
    return derive(first, second)


def row(frame: Frame, table: str, name: str) -> dict[str, float]:
    found = frame.tables[table]
    at = found.rows.names.index(name)
    return {field_id: float(values[at]) for field_id, values in found.columns.items()}


@pytest.mark.parametrize("version", ["3", "4.0", "4.1", "4.2"])
@pytest.mark.parametrize("connections", [1, 4, 16])
def test_versions_and_connections(version: str, connections: int) -> None:
    mount = FakeMount(version=version, transports=tuple(TCP.format(sends=at) for at in range(connections)))
    (found,) = parse_mountstats(OTHERS + mount.text)
    assert found.key().text == f"{version} tcp - server:/export /mnt all"
    assert [each.values["sends"] for each in found.transports] == list(range(connections))
    assert found.bytes["direct_read_bytes"] == 65536
    assert found.operations["READ"]["execute_ms"] == 800


def test_transports_by_their_kind_and_number_of_fields() -> None:
    lines = (V3.transports[0], UDP, RDMA, "local 0 2 0 7 9 8 0 9 0 2 3 4", "tcp 0 0 2 0 0 7 7 0 9 1")
    (found,) = parse_mountstats(replace(V3, transports=lines).text)
    tcp, udp, rdma, local, old = found.transports
    assert (tcp.kind, tcp.port) == ("tcp", 894)
    assert tcp.values == {
        "connects": 2,
        "idle_s": 4,
        "sends": 35,
        "receives": 34,
        "bad_xids": 1,
        "outstanding_sum": 311,
        "backlog_sum": 6,
        "slots_peak": 17,
        "sending_sum": 12,
        "pending_sum": 26,
    }
    assert (udp.port, udp.values["sends"], udp.values["backlog_sum"], udp.values["pending_sum"]) == (801, 500, 4, 800)
    assert "connects" not in udp.values
    assert (rdma.values["receives"], rdma.values["rdma_sent_bytes"], rdma.values["rdma_received_bytes"]) == (
        99,
        4096,
        8192,
    )
    assert [
        rdma.values[f"rdma_{name}"] for name in ("failed_marshal", "bad_replies", "empty_sendctx", "reply_waits")
    ] == [
        4,
        5,
        11,
        12,
    ]
    assert "slots_peak" not in rdma.values
    assert (local.port, local.values["idle_s"], local.values["pending_sum"]) == (None, 7, 4)
    assert "pending_sum" not in old.values


def test_eight_and_nine_fields_of_an_operation() -> None:
    operations = {"READ": "5 6 1 10 20 30 40 70", "WRITE": "5 5 0 1 2 3 4 7 2 99", "COMMIT": "0 0 0 0 0 0 0 0 0"}
    (found,) = parse_mountstats(FakeMount(operations=operations).text)
    assert set(found.operations) == {"READ", "WRITE"}
    assert "errors" not in found.operations["READ"]
    assert found.operations["WRITE"]["errors"] == 2


@pytest.mark.parametrize(
    "line",
    [
        "\tREAD: 5 6 1",
        "\tREAD: a b c d e f g h i",
        "\tREAD: -5 6 1 10 20 30 40 70 0",
        "\tREAD:",
        "\txprt:",
        "\txprt:\ttcp",
        "\txprt:\ttcp 0 0 2 0 0 x y 0 9 1 2 3 4",
        "\txprt:\tquic 0 0 2 0 0 7 7 0 9 1",
        "\tbytes:\tx",
        "\topts:",
        ":",
        "device mounted on with fstype nfs",
        "\tREAD: " + "9" * 5000 + " 1 1 1 1 1 1 1",
    ],
)
def test_damaged_lines_are_left_out(line: str) -> None:
    text = FakeMount(transports=(), operations={}).text + line + "\n"
    assert [(len(each.transports), each.operations) for each in parse_mountstats(text)] == [(0, {})]
    assert parse_mountstats(line) == []


def test_a_text_cut_anywhere_is_read() -> None:
    text = FakeMount().text + V3.text
    assert all(len(parse_mountstats(text[:end])) <= 2 for end in range(len(text)))


def test_huge_numbers_are_no_overflow(tmp_path: Path) -> None:
    (one,) = samples(
        tmp_path, [[FakeMount(operations={"READ": "18446744073709551615 " + "99999999999999999999 " * 7})]]
    )
    assert int(one.tables[NFS_OPERATION.name].column("operations")[0]) < int(MISSING)


def test_names_with_spaces_and_pipes() -> None:
    (found,) = parse_mountstats(FakeMount("/mnt/my\\040data|x", "server:/a\\040b").text)
    key = nfs_key(found.key("READ").text)
    assert (key.point, key.device, key.part) == ("/mnt/my\\040data|x", "server:/a\\040b", "READ")


def test_figures_of_an_operation_and_of_the_mount(tmp_path: Path) -> None:
    before = FakeMount(operations={"READ": "100 100 0 1000 400000 200 500 800 0"})
    now = FakeMount(
        operations={"READ": "300 310 2 3000 1200000 1200 2500 4000 5", "WRITE": "100 100 0 409600 1000 0 100 100 0"},
        transports=("tcp 0 0 2 0 0 500 490 0 2300 40 10 450 1800",),
        bytes="8192 0 65536 0 81920 0 16 0",
    )
    frame = frame_of(tmp_path, [before], [now])
    read = row(frame, "nfs", "/mnt READ")
    assert (read["iops"], read["queue_ms"], read["rtt_ms"], read["execute_ms"]) == (200, 5, 10, 16)
    assert (read["retransmissions_per_s"], read["retransmission_pct"], read["timeouts_per_s"]) == (10, 5, 2)
    assert (read["errors_per_s"], read["in_flight"], read["bytes_per_io"]) == (5, 3.2, 4010)
    whole = row(frame, "nfs", "/mnt all")
    assert whole["iops"] == 300, "an operation that is new counts from 0, as in the sum"
    assert row(frame, "nfs", "/mnt WRITE")["iops"] == 100
    assert whole["bytes_per_s"] == read["bytes_per_s"] + row(frame, "nfs", "/mnt WRITE")["bytes_per_s"]
    assert (whole["application_read_bytes_per_s"], whole["server_read_bytes_per_s"]) == (4096, 16384)
    assert whole["direct_pct"] == 0
    assert math.isnan(read["direct_pct"])
    transport = row(frame, "nfs_transports", "/mnt tcp 1")
    assert (transport["sends_per_s"], transport["receives_per_s"]) == (400, 390)
    assert (transport["in_flight"], transport["backlog"], transport["sending"], transport["pending"]) == (5, 0.1, 1, 4)
    assert (transport["share_pct"], transport["balance"], whole["imbalance"]) == (100, 1, 1)
    assert math.isnan(transport["slots_now"])


def test_counters_that_went_back_have_no_figures(tmp_path: Path) -> None:
    fresh = FakeMount(
        operations={"READ": "3 3 0 10 40 2 5 8 0"}, transports=("tcp 0 0 1 0 0 3 3 0 3 0 2 0 3",), bytes="0"
    )
    frame = frame_of(tmp_path, [FakeMount()], [fresh])
    for table, name in (("nfs", "/mnt all"), ("nfs", "/mnt READ"), ("nfs_transports", "/mnt tcp 1")):
        found = row(frame, table, name)
        assert all(math.isnan(found[each]) for each in ("iops", "queue_ms", "sends_per_s") if each in found), name
    assert not list(nfs_remarks(frame))


def test_a_mount_that_is_new_has_no_figures(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, [FakeMount()], [FakeMount(), V3])
    assert math.isnan(row(frame, "nfs", "/mnt/v3 READ")["iops"])
    assert row(frame, "nfs", "/mnt READ")["iops"] == 0


def test_errors_that_an_old_kernel_does_not_count(tmp_path: Path) -> None:
    frame = frame_of(
        tmp_path,
        [FakeMount(operations={"READ": "1 1 0 1 1 1 1 1"})],
        [FakeMount(operations={"READ": "9 9 0 9 9 9 9 9", "WRITE": "5 5 0 5 5 5 5 5"})],
    )
    for name in ("/mnt all", "/mnt READ", "/mnt WRITE"):
        assert row(frame, "nfs", name)["iops"] > 0
        assert math.isnan(row(frame, "nfs", name)["errors_per_s"])


def _sends(*counts: int, sending: int = 0, backlog: int = 0) -> tuple[str, ...]:
    return tuple(
        f"tcp 0 0 2 0 0 {count} {count} 0 {count} {count * backlog} 10 {count * sending} {count}" for count in counts
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (FakeMount(transports=_sends(1100, sending=3)), "one flow is the limit"),
        (FakeMount(transports=_sends(1100, backlog=2)), "slots exhausted"),
        (FakeMount(transports=_sends(900, 100, 100, 100)), "transports unbalanced: the busiest of 4 sends 3.0 x"),
        (
            FakeMount(operations={"READ": "1100 1100 0 1 1 1000 19000 20000 0"}),
            "server or network slow: RTT 19.0 of 20.0",
        ),
        (FakeMount(operations={"READ": "1100 1100 0 1 1 19000 1000 20000 0"}), "client queue: 19.0 of 20.0 ms before"),
        (FakeMount(operations={"READ": "1100 1150 0 1 1 1 1 1 0"}), "5 % sent again"),
    ],
)
def test_verdicts(tmp_path: Path, now: FakeMount, words: str) -> None:
    busy = {"READ": "1100 1100 0 1 1 100 1000 1200 0"}
    now = now if now.operations != FakeMount().operations else replace(now, operations=busy)
    zero = FakeMount(
        operations={"READ": "100 100 0 1 1 0 0 0 0"}, transports=tuple(TCP.format(sends=0) for _ in now.transports)
    )
    (line,) = nfs_remarks(frame_of(tmp_path, [zero], [now]))
    assert line.startswith("! /mnt: ")
    assert words in line
    assert line.count("; ") == 0, "nothing else"


def test_a_calm_mount_has_no_verdict(tmp_path: Path) -> None:
    zero = FakeMount(operations={"READ": "100 100 0 1 1 0 0 0 0"}, transports=_sends(0, 0))
    calm = FakeMount(operations={"READ": "1100 1100 0 1 1 100 2000 2200 0"}, transports=_sends(510, 490))
    assert list(nfs_remarks(frame_of(tmp_path, [zero], [calm]))) == []
    uneven_by_chance = FakeMount(operations={"READ": "110 110 0 1 1 0 10 20 0"}, transports=_sends(8, 2))
    assert list(nfs_remarks(frame_of(tmp_path, [zero], [uneven_by_chance]))) == []


def test_requests_without_any_reply(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    write_switch(sysfs, 1, 1, [{"pending_q_len": 7}])
    mount = FakeMount()
    assert "no reply in this interval, 7 requests wait" in next(
        nfs_remarks(frame_of(tmp_path, [mount], [mount], sysfs))
    )


def test_transports_of_sysfs_are_found_by_address_kind_number_and_ports(tmp_path: Path) -> None:
    sysfs, four = tmp_path / "sys", FakeMount(transports=_sends(1, 2, 3, 4))
    write_switch(sysfs, 0, 0, [{"dst_port": 0}])
    write_switch(sysfs, 1, 10, [{"num_reqs": at} for at in (5, 6, 7, 8)])
    write_switch(sysfs, 2, 20, [{"src_port": 894, "num_reqs": 9}])
    write_switch(sysfs, 3, 30, [{"src_port": 700}])
    write_switch(sysfs, 4, 40, [{}] * 4, address="192.0.2.2")
    (found,) = samples(tmp_path, [[four, V3]], sysfs)
    table = found.tables[NFS_TRANSPORT.name]
    assert table.column("slots_now").tolist() == [5, 6, 7, 8, 9]
    assert table.column("online").tolist() == [1] * 5


def test_local_ports_say_which_transport_is_which(tmp_path: Path) -> None:
    """As seen on Linux 6.1, where the number of a transport that had gone was used again."""
    sysfs = tmp_path / "sys"
    write_switch(
        sysfs,
        3,
        6,
        [
            {"src_port": 807, "num_reqs": 3},
            {"src_port": 723, "num_reqs": 5, "main_xprt": 1},
            {"src_port": 0, "num_reqs": 7},
        ],
    )
    mount = replace(V3, transports=[f"tcp {port} 1 2 0 0 5 5 0 5 0 2 0 0" for port in (723, 900, 807)])
    (found,) = samples(tmp_path, [[mount]], sysfs)
    assert found.tables[NFS_TRANSPORT.name].column("slots_now").tolist() == [5, 7, 3]


def test_transports_without_ports_whose_order_is_not_certain(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    write_switch(sysfs, 3, 6, [{"src_port": 807}, {"src_port": 723, "main_xprt": 1}])
    (found,) = samples(tmp_path, [[FakeMount(transports=_sends(1, 2))]], sysfs)
    assert found.tables[NFS_TRANSPORT.name].column("slots_now").tolist() == [int(MISSING)] * 2


def test_two_switches_that_may_be_it_give_nothing(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    write_switch(sysfs, 1, 1, [{}])
    write_switch(sysfs, 2, 2, [{}])
    (found,) = samples(tmp_path, [[FakeMount()]], sysfs)
    assert found.tables[NFS_TRANSPORT.name].column("slots_now").tolist() == [int(MISSING)]


def test_a_closed_transport_has_no_gauges(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    write_switch(sysfs, 1, 1, [{}])
    folder = sysfs / "kernel/sunrpc/xprt-switches/switch-1/xprt-1-tcp"
    (folder / "xprt_info").write_text("<closed>\n")
    (folder / "xprt_state").write_text("state= CLOSED\n")
    (found,) = samples(tmp_path, [[FakeMount()]], sysfs)
    table = found.tables[NFS_TRANSPORT.name]
    assert (int(table.column("slots_now")[0]), int(table.column("online")[0])) == (int(MISSING), 0)


def test_a_host_without_nfs_has_no_tables_and_mounts_keep_their_rows(tmp_path: Path) -> None:
    collector = NfsCollector(str(tmp_path), str(tmp_path))
    assert collector.read().tables == {}
    write_mountstats(tmp_path)
    assert collector.read().tables == {}
    write_mountstats(tmp_path, FakeMount())
    first = collector.read().tables[NFS_OPERATION.name]
    assert collector.read().tables[NFS_OPERATION.name].rows is first.rows
    write_mountstats(tmp_path)
    assert len(collector.read().tables[NFS_OPERATION.name].rows) == 0


def test_metrics_have_the_names_of_node_exporter(tmp_path: Path) -> None:
    twice = [FakeMount(transports=_sends(100, 200)), FakeMount("/again", transports=_sends(100, 200)), V3]
    found = series(of_sample(samples(tmp_path, [twice])[0], "nfs"))
    mount = 'export="server:/export",protocol="tcp",mountaddr="192.0.2.1"'
    assert found[f'node_mountstats_nfs_operations_requests_total{{{mount},operation="READ"}}'] == 100
    assert found[f'node_mountstats_nfs_operations_response_time_seconds_total{{{mount},operation="READ"}}'] == 0.5
    assert found[f'node_mountstats_nfs_transport_sends_total{{{mount},transport="1"}}'] == 200
    assert found[f"node_mountstats_nfs_direct_read_bytes_total{{{mount}}}"] == 65536


def test_report_and_recording(tmp_path: Path) -> None:
    busy = FakeMount(operations={"READ": "1100 1100 0 9000 900000 1200 19500 20800 0"}, transports=_sends(1100, 1100))
    both = samples(tmp_path, [[FakeMount(transports=_sends(100, 100))], [busy]])
    steps = [Step(None, both[0]), Step(both[0], both[1])]
    lines = list(report_text(steps, ReportOptions(("nfs", "nfs_transports"))))
    assert any("/mnt READ" in line and "1000.0" in line for line in lines)
    assert any("! /mnt: server or network slow" in line for line in lines)
    assert any(line.startswith("Average") and "/mnt tcp 2" in line and "50.0" in line for line in lines)
    document = json.loads(list(report_json(steps, ReportOptions(("nfs", "nfs_transports"))))[-1])
    read = next(each for each in document["nfs"] if each["operation"] == "READ")
    assert (read["mount"], read["export"], read["version"], read["protocol"]) == (
        "/mnt",
        "server:/export",
        "4.2",
        "tcp",
    )
    assert document["nfs_transports"][1]["transport"] == "2"
    with SessionWriter(tmp_path / "a.luns") as writer:
        for each in both:
            writer.write(each)
    with SessionReader(tmp_path / "a.luns") as reader:
        again = reader.sample_at(1)
    assert again is not None
    for name in (NFS_OPERATION.name, NFS_TRANSPORT.name):
        assert np.array_equal(again.tables[name].values, both[1].tables[name].values)
