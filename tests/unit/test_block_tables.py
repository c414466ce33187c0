"""Disks, paths and ports out of one disk table: the books balance, and nobody is counted twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.graph import Graph, Lun, Path, Port, TargetPort
from collectors.model import Device, Frame, HostFacts, Rows, Topology
from collectors.rates import derive
from tests.unit.raw_samples import disks, rows, sample

LUNS, HOSTS = 3, 2
MAPS = tuple(f"dm-{lun}" for lun in range(LUNS))
PATHS = tuple(f"sd{lun}h{host}" for lun in range(LUNS) for host in range(HOSTS))
WHO = rows(*MAPS, *PATHS, "sdz")


def key(name: str) -> str:
    return WHO.keys[WHO.names.index(name)]


def graph(multipath: str = "dm") -> Graph:
    return Graph(
        ports=(Port("p0", "host0", "fc", queue_limit=100, members=("host0", "nvme0")), Port("p1", "host1", "fc"),
               Port("p2", "host2", "sas")),
        luns=(*(Lun(key(name), name, multipath) for name in MAPS), Lun(key("sdz"), "sdz")),
        paths=(
            *(Path(key(f"sd{lun}h{host}"), f"sd{lun}h{host}", key(f"dm-{lun}"), f"p{host}", queue_limit=8)
              for lun in range(LUNS) for host in range(HOSTS)),
            Path(key("sdz"), "sdz", key("sdz"), "p0"),
        ),
    )  # fmt: skip


def topology(multipath: str = "dm", uncounted: tuple[str, ...] = ()) -> Topology:
    devices = {
        one: Device(one, name, "disk", 8, 0, iostats=name not in uncounted)
        for one, name in zip(WHO.keys, WHO.names, strict=True)
    }
    return Topology(devices, HostFacts(kernel="6.18"), graph(multipath))


def frame(of: dict[str, dict[str, int]], about: Topology, who: Rows = WHO) -> Frame:
    """One second in which each named row did so much; all others nothing."""
    before = disks(who, *({} for _ in who.names))
    after = disks(who, *(of.get(name, {}) for name in who.names))
    return derive(sample(1, disks=before, topology=about), sample(2, disks=after, topology=about))


def did(ios: int, each_ms: int, busy_ms: int) -> dict[str, int]:
    return {"reads": ios, "read_sectors": ios * 8, "read_ms": ios * each_ms, "busy_ms": busy_ms}


def test_a_lun_is_one_disk_and_its_paths_are_listed_apart() -> None:
    tables = frame({}, topology()).tables
    assert tables["disks"].rows.names == (*MAPS, "sdz")
    assert tables["paths"].rows.names == (*PATHS, "sdz")
    assert tables["hbas"].rows.names == ("host0+nvme0", "host1")


def test_rows_stay_the_same_object_while_nobody_comes_or_goes() -> None:
    about = topology()
    first, second = frame({}, about).tables, frame({}, about).tables
    for name in ("disks", "paths", "hbas"):
        assert first[name].rows is second[name].rows


def test_a_recording_without_a_graph_shows_every_row_as_a_disk() -> None:
    tables = frame({}, Topology()).tables
    assert set(tables) == {"disks"}
    assert tables["disks"].rows is WHO


def test_means_of_a_port_weigh_its_paths_by_their_ios() -> None:
    port = frame({"sd0h0": did(900, 1, 500), "sd1h0": did(100, 11, 300)}, topology()).tables["hbas"]
    assert port.value("iops", 0) == 1000
    assert port.value("await_ms", 0) == pytest.approx((900 * 1 + 100 * 11) / 1000)
    assert port.value("in_flight", 0) == pytest.approx(2.0)
    assert port.value("limit_pct", 0) == pytest.approx(2.0)
    assert np.isnan(port.value("limit_pct", 1))
    assert port.value("paths", 0) == LUNS + 1


def test_busy_of_a_port_is_a_range_unless_it_is_one_figure() -> None:
    port = frame({"sd0h0": did(900, 1, 700), "sd1h0": did(100, 1, 500), "sd0h1": did(5, 1, 250)}, topology())
    hbas = port.tables["hbas"]
    assert (hbas.value("busy_low_pct", 0), hbas.value("busy_high_pct", 0)) == (70, 100)
    assert np.isnan(hbas.value("busy_pct", 0))
    assert [hbas.value(field, 1) for field in ("busy_low_pct", "busy_high_pct", "busy_pct")] == [25, 25, 25]


def test_shares_of_a_lun_add_up() -> None:
    paths = frame({"sd0h0": did(610, 1, 1), "sd0h1": did(390, 1, 1), "sdz": did(5, 1, 1)}, topology()).tables["paths"]
    share = dict(zip(paths.rows.names, paths.columns["lun_share_pct"].tolist(), strict=True))
    assert (share["sd0h0"], share["sd0h1"], share["sdz"]) == (61, 39, 100)
    assert np.isnan(share["sd1h0"])


def test_an_idle_host_has_idle_ports() -> None:
    hbas = frame({}, topology()).tables["hbas"]
    for field in ("iops", "bytes_per_s", "in_flight", "busy_pct", "busy_low_pct", "busy_high_pct"):
        assert hbas.columns[field].tolist() == [0, 0], field
    assert np.isnan(hbas.columns["await_ms"]).all()


def test_the_first_sample_has_no_figures_of_ports() -> None:
    about = topology()
    hbas = derive(None, sample(1, disks=disks(WHO, *({} for _ in WHO.names)), topology=about)).tables["hbas"]
    for field in ("iops", "in_flight", "busy_pct", "busy_low_pct", "busy_high_pct", "await_ms"):
        assert np.isnan(hbas.columns[field]).all(), field


def test_an_nvme_head_that_does_not_count_shows_the_sums_of_its_paths() -> None:
    about = topology("nvme", uncounted=("dm-0", "dm-1"))
    tables = frame({"sd0h0": did(300, 2, 400), "sd0h1": did(100, 10, 500), "sd1h0": did(8, 1, 8)}, about).tables
    heads = tables["disks"]
    assert heads.value("iops", 0) == 400
    assert heads.value("await_ms", 0) == pytest.approx(4.0)
    assert heads.value("in_flight", 0) == pytest.approx(1.6)
    assert np.isnan(heads.value("busy_pct", 0))
    assert heads.value("busy_pct", 1) == pytest.approx(0.8)
    assert heads.value("iops", 2) == 0


def test_an_nvme_head_that_counts_is_taken_at_its_word() -> None:
    tables = frame({"dm-0": did(390, 3, 400), "sd0h0": did(400, 2, 400)}, topology("nvme")).tables
    assert tables["disks"].value("iops", 0) == 390


def test_a_path_that_is_not_counted_leaves_its_port_unknown() -> None:
    hbas = frame({"sd0h0": did(300, 2, 400)}, topology(uncounted=("sd1h0",))).tables["hbas"]
    assert np.isnan(hbas.value("iops", 0))
    assert np.isnan(hbas.value("busy_high_pct", 0))
    assert hbas.value("iops", 1) == 0


def test_a_path_that_is_new_leaves_its_port_unknown_for_one_interval() -> None:
    about = topology()
    fewer = Rows(WHO.keys[:-1], WHO.names[:-1])
    before, after = disks(fewer, *({} for _ in fewer.names)), disks(WHO, *(did(9, 1, 9) for _ in WHO.names))
    hbas = derive(sample(1, disks=before, topology=about), sample(2, disks=after, topology=about)).tables["hbas"]
    assert np.isnan(hbas.value("iops", 0))
    assert hbas.value("iops", 1) == 27


_AMOUNTS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 90)),
    min_size=len(PATHS), max_size=len(PATHS),
)  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(_AMOUNTS)
def test_books_balance(amounts: list[tuple[int, int, int]]) -> None:
    """What paths did adds up to their LUN's and their port's, and what ports did to the host's."""
    of = {
        name: {"reads": reads, "writes": writes, "read_sectors": 8 * reads, "write_sectors": 16 * writes,
               "read_ms": reads * each_ms, "write_ms": writes * each_ms, "busy_ms": min(1000, reads + writes)}
        for name, (reads, writes, each_ms) in zip(PATHS, amounts, strict=True)
    }  # fmt: skip
    tables = frame(of, topology("nvme")).tables
    lun, path, port = tables["disks"], tables["paths"], tables["hbas"]
    for field in ("iops", "reads_per_s", "writes_per_s", "bytes_per_s", "read_bytes_per_s", "in_flight"):
        by_lun = path.columns[field][:-1].reshape(LUNS, HOSTS)
        np.testing.assert_allclose(lun.columns[field][:-1], by_lun.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(port.columns[field], by_lun.sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(port.columns[field].sum(), lun.columns[field].sum(), rtol=1e-12)
    assert (port.columns["busy_low_pct"] <= port.columns["busy_high_pct"] + 1e-9).all()
    assert (port.columns["busy_high_pct"] <= 100 + 1e-9).all()


def test_two_targets_over_four_ports_add_up_to_the_paths_and_the_host_counts_each_io_once() -> None:
    paths = [(port, target) for port in range(4) for target in range(2)]
    names = ["dm-0", *(f"sd{port}t{target}" for port, target in paths), "nvme9n1"]
    who = rows(*names)
    keys = dict(zip(names, who.keys, strict=True))
    found = Graph(
        ports=tuple(Port(f"p{port}", f"host{port}", "fc") for port in range(4)),
        targets=tuple(TargetPort(f"t{target}", f"0x50{target}", "fc", label=f"spa{target}") for target in range(2)),
        luns=(Lun(keys["dm-0"], "dm-0", "dm"), Lun(keys["nvme9n1"], "nvme9n1")),
        paths=(
            *(
                Path(keys[f"sd{port}t{target}"], f"sd{port}t{target}", keys["dm-0"], f"p{port}", f"t{target}")
                for port, target in paths
            ),
            Path(keys["nvme9n1"], "nvme9n1", keys["nvme9n1"]),
        ),
    )
    devices = {keys[name]: Device(keys[name], name, "dm" if name == "dm-0" else "disk", 8, 0) for name in names}
    about = Topology(devices, HostFacts(kernel="6.18"), found)
    loads = {f"sd{port}t{target}": did(10 * (port + 1) + target, 2, 100 + 50 * port) for port, target in paths}
    tables = frame({**loads, "dm-0": did(204, 2, 400), "nvme9n1": did(7, 1, 30)}, about, who).tables
    targets, host = tables["target_ports"], tables["whole_host"]
    assert targets.rows.names == ("spa0", "spa1")
    assert targets.columns["iops"].tolist() == [100, 104]
    assert targets.columns["paths"].tolist() == [4, 4]
    for field in ("iops", "read_bytes_per_s", "in_flight"):
        of_paths = tables["paths"].columns[field].sum()
        assert tables["hbas"].columns[field].sum() == pytest.approx(of_paths - tables["paths"].value(field, 8))
        assert targets.columns[field].sum() == tables["hbas"].columns[field].sum()
        assert host.columns[field].tolist() == pytest.approx([of_paths])
    assert host.columns["paths"].tolist() == [9]
    assert [(targets.value("busy_low_pct", row), targets.value("busy_high_pct", row)) for row in (0, 1)] == [
        (25, 70),
        (25, 70),
    ]
    assert (host.value("busy_low_pct", 0), host.value("busy_high_pct", 0)) == (25, 100)
    assert np.isnan(host.value("busy_pct", 0))
