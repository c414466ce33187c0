"""Names, units and labels of families, and values that are missing."""

from __future__ import annotations

import re
from pathlib import Path as FilePath

from collectors.graph import Graph, Lun, Path, Port
from collectors.metrics.collection import MetricsCollection
from collectors.metrics.family import FamilyKind
from collectors.metrics.loads import LOAD_FAMILIES
from collectors.metrics.registry import ALWAYS, LEVELS, chosen_levels
from collectors.model import Device, Rows, Sample, Step, Topology
from collectors.tables.tape.schema import TAPE
from tests import needs
from tests.unit import raw_samples as raw
from tests.unit.traced_samples import traced_sample

REPOSITORY = FilePath(__file__).parents[3]
FAMILIES = [*(family for level in (*LEVELS, ALWAYS) for family in level.families), *LOAD_FAMILIES]
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


def exposed(*steps: Step, level: str = "all", node_names: bool = True) -> str:
    collection = MetricsCollection(chosen_levels([level]), per_octave=2, node_names=node_names)
    for step in steps:
        collection.add(step)
    return collection.text().decode()


def of_sample(sample: Sample, level: str = "all") -> str:
    return exposed(Step(None, sample), level=level)


def series(text: str) -> dict[str, float]:
    """Values by name and labels; every line must be a comment or a series, and no series may be there twice."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = _LINE.fullmatch(line)
            assert match, line
            name = line.rpartition(" ")[0]
            assert name not in found
            found[name] = float(match[3])
    return found


def test_names_follow_the_rules_of_prometheus() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    for family in FAMILIES:
        assert re.fullmatch(r"(node|lunscope)_[a-z0-9_]+|node_memory_(Dirty|Writeback)_bytes", family.name)
        assert family.name.endswith("_total") == (family.kind is FamilyKind.COUNTER), family.name
        assert not re.search(r"_(ms|us|ns|sectors?|pct)(_total|$)", family.name) or "discarded_sectors" in family.name
        assert family.help
        assert "le" not in family.label_names


def test_the_time_of_lost_ios_stands_beside_the_busy_time_it_may_have_lengthened() -> None:
    lossy = {"reads": 1, "busy_ns": 2_500_000_000, "lost_in_driver_ns": 500_000_000}
    found = series(of_sample(traced_sample(1, raw.rows("sda"), lossy), "disks"))
    assert found['lunscope_disk_busy_seconds_total{device="sda"}'] == 2.5
    assert found['lunscope_disk_lost_in_driver_seconds_total{device="sda"}'] == 0.5


def test_counters_beyond_a_float_are_whole_numbers() -> None:
    who = raw.rows("sda")
    text = of_sample(raw.sample(1, disks=raw.disks(who, {"reads": (1 << 53) + 1})), "disks")
    assert f'node_disk_reads_completed_total{{device="sda"}} {(1 << 53) + 1}\n' in text


def test_missing_values_have_no_series() -> None:
    who = raw.rows("sda", "sdb")
    older = {"flushes": raw.RAW_MISSING, "flush_ms": raw.RAW_MISSING}
    found = series(of_sample(raw.sample(1, disks=raw.disks(who, {"flushes": 3} | {}, older)), "disks"))
    assert found['node_disk_flush_requests_total{device="sda"}'] == 3
    assert 'node_disk_flush_requests_total{device="sdb"}' not in found
    nowhere = of_sample(raw.sample(1, disks=raw.disks(who, older, older)), "disks")
    assert "node_disk_flush_requests_total" not in nowhere
    assert "lunscope_disk_queue_seconds" not in nowhere


def test_an_in_flight_count_below_zero_is_missing() -> None:
    who = raw.rows("sda")
    text = of_sample(raw.sample(1, disks=raw.disks(who, {"in_flight_now": (1 << 32) - 1})), "disks")
    assert "node_disk_io_now" not in text


@needs.prometheus_client
def test_prometheus_client_reads_what_names_contain() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    names = ('a"b', "c\\d", "e{f}=g", "h,i j", "k\nl", "ü", "\udcff", "#m")
    who = Rows(tuple(f"{number}:8:0#1" for number in range(len(names))), names)
    text = of_sample(raw.sample(1, disks=raw.disks(who, *[{"reads": number} for number in range(len(names))])), "disks")
    reads = next(one for one in text_string_to_metric_families(text) if one.name == "node_disk_reads_completed")
    read = {sample.labels["device"]: sample.value for sample in reads.samples}
    assert [*read.values()] == [*range(len(names))]
    assert [*read][:4] == [*names[:4]]


def test_a_name_that_two_rows_have_is_one_series() -> None:
    who = Rows(("sda:8:0#1", "sda:8:0#2"), ("sda", "sda"))
    assert 'device="sda"' in of_sample(raw.sample(1, disks=raw.disks(who, {"reads": 1}, {"reads": 2})), "disks")
    series(of_sample(raw.sample(1, disks=raw.disks(who, {"reads": 1}, {"reads": 2}))))


def test_names_of_node_exporter_can_be_left_out() -> None:
    who = raw.rows("sda")
    step = Step(None, raw.sample(1, disks=raw.disks(who, {}), host=raw.host(), topology=raw.topology(who)))
    assert "node_" not in exposed(step, node_names=False)
    assert "lunscope_disk_info" in exposed(step, node_names=False)


def multipath() -> tuple[Rows, Topology]:
    """One LUN over two paths on two ports of FC, one of them failed, and one NVMe head with two paths."""
    names = ("dm-3", "sda", "sdb", "nvme0n1", "nvme0c1n1", "nvme0c2n1")
    who = Rows(names, names)
    graph = Graph(
        ports=(
            *(Port(key, key, "fc", members=(key,), state="Online") for key in ("host1", "host2")),
            *(Port(key, key, "nvme-tcp", members=(key,), serial="S", subsystem="nqn.x") for key in ("nvme1", "nvme2")),
        ),
        luns=(Lun("dm-3", "dm-3", "dm", "queue-length"), Lun("nvme0n1", "nvme0n1", "nvme", "round-robin")),
        paths=(
            Path("sda", "sda", "dm-3", port="host1", state="running", access="active/optimized", map_state="active"),
            Path("sdb", "sdb", "dm-3", port="host2", state="offline", map_state="failed"),
            Path("nvme0c1n1", "nvme0c1n1", "nvme0n1", port="nvme1", state="live", access="optimized"),
            Path("nvme0c2n1", "nvme0c2n1", "nvme0n1", port="nvme2", state="connecting", access="optimized"),
        ),
    )
    devices = {
        "dm-3": Device("dm-3", "dm-3", "dm", 253, 3, friendly_name="mpatha", persistent_id="mpath-36", size_bytes=4096),
        "nvme0n1": Device("nvme0n1", "nvme0n1", "disk", 259, 0, model="M"),
    }
    return who, Topology(devices, graph=graph)


def test_states_have_the_names_and_labels_of_node_exporter() -> None:
    who, topology = multipath()
    found = series(of_sample(raw.sample(1, disks=raw.disks(who, *[{}] * 6), topology=topology), "states"))
    of_map = 'device="mpatha",sysfs_name="dm-3"'
    assert found[f'node_dmmultipath_device_info{{{of_map},uuid="mpath-36"}}'] == 1
    assert found[f"node_dmmultipath_device_size_bytes{{{of_map}}}"] == 4096
    counts = [
        found[f"node_dmmultipath_device_{name}{{{of_map}}}"] for name in ("paths", "paths_active", "paths_failed")
    ]
    assert counts == [2, 1, 1]
    nvme = 'subsystem="nvme-subsys0"'
    info = f'node_nvmesubsystem_info{{{nvme},nqn="nqn.x",model="M",serial="S",iopolicy="round-robin"}}'
    assert found[info] == 1
    assert found[f'node_nvmesubsystem_namespace_info{{{nvme},device="nvme0n1"}}'] == 1
    assert [found[f"node_nvmesubsystem_{name}{{{nvme}}}"] for name in ("paths", "paths_live")] == [2, 1]
    state = f'node_nvmesubsystem_path_state{{{nvme},controller="nvme2",transport="tcp",state='
    assert found[f'{state}"connecting"}}'] == 1
    assert found[f'{state}"live"}}'] == 0
    assert found['lunscope_disk_paths_usable{device="dm-3"}'] == 1


def test_paths_are_a_level_of_their_own() -> None:
    who, topology = multipath()
    sample = raw.sample(1, disks=raw.disks(who, *[{"reads": number} for number in range(6)]), topology=topology)
    disks = series(of_sample(sample, "disks"))
    assert [disks[f'node_disk_reads_completed_total{{device="{name}"}}'] for name in ("dm-3", "nvme0n1")] == [0, 3]
    assert not any('"sda"' in name for name in disks)
    paths = series(of_sample(sample, "paths"))
    assert paths['lunscope_path_reads_completed_total{path="sda",device="dm-3",port="host1"}'] == 1
    assert paths['lunscope_path_usable{path="sdb",device="dm-3",port="host2"}'] == 0
    assert paths['node_dmmultipath_path_state{device="mpatha",path="sdb",state="offline"}'] == 1


def test_a_port_has_what_its_paths_did_and_never_less() -> None:
    who, topology = multipath()
    reads = ((10, 20), (15, 26))
    first, second = (
        raw.sample(
            at, disks=raw.disks(who, {}, {"reads": one, "read_sectors": 8 * one}, {"reads": two}), topology=topology
        )
        for at, (one, two) in enumerate(reads, 1)
    )
    steps = [Step(None, first), Step(first, second)]
    found = series(exposed(*steps, level="ports"))
    assert found['lunscope_port_reads_completed_total{port="host1"}'] == 5
    assert found['lunscope_port_read_bytes_total{port="host1"}'] == 5 * 8 * 512
    assert found['lunscope_port_reads_completed_total{port="host2"}'] == 6
    fewer = Rows(who.names[:2], who.names[:2])
    gone = raw.sample(3, disks=raw.disks(fewer, {}, {"reads": 16, "read_sectors": 120}), topology=topology)
    later = series(exposed(*steps, Step(second, gone), level="ports"))
    assert later['lunscope_port_reads_completed_total{port="host1"}'] == 6
    reset = raw.sample(4, disks=raw.disks(fewer, {}, {"reads": 2}), topology=topology)
    assert (
        series(exposed(*steps, Step(second, gone), Step(gone, reset), level="ports"))[
            'lunscope_port_reads_completed_total{port="host1"}'
        ]
        == 6
    )


def test_tapes_and_host() -> None:
    tape = raw.raw_table(TAPE, Rows(("st0",), ("st0",)), [{"read_bytes": 5, "read_ns": 1_500_000_000}])
    found = series(of_sample(raw.sample(1, host=raw.host(psi_io_some_us=2_500_000, dirty_bytes=7), tapes=tape)))
    assert found['node_tape_read_time_seconds_total{device="st0"}'] == 1.5
    assert found["node_pressure_io_waiting_seconds_total"] == 2.5
    assert found["node_memory_Dirty_bytes"] == 7


def test_the_dashboard_asks_for_families_that_there_are() -> None:
    text = (REPOSITORY / "docs/grafana-lunscope.json").read_text(encoding="utf-8")
    asked = set(re.findall(r"\b(?:node|lunscope)_[a-z_]+\b", text))
    known = {family.name for family in FAMILIES}
    histograms = {f"{family.name}_bucket" for family in FAMILIES if family.kind is FamilyKind.HISTOGRAM}
    assert len(asked) > 10
    assert asked <= known | histograms


def test_the_manual_lists_every_family() -> None:
    text = (REPOSITORY / "docs/metrics.md").read_text(encoding="utf-8")
    assert [family.name for family in FAMILIES if f"`{family.name}`" not in text] == []
    assert [level.id for level in LEVELS if f"`{level.id}`" not in text] == []
