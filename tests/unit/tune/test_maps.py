"""Tunables of maps: path selectors by exchanging a table, arguments of dm-cache by messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.hostfs.dm_control import INACTIVE_PRESENT, SUSPENDED, MapAnswer, Number
from engine.replacing import replace
from engine.tune.apply import apply_plan, restore
from engine.tune.map_values import cache_arguments
from engine.tune.multipath_table import canonical_selectors, parse_table, plain_choices, unused_parts
from engine.tune.persist import configuration
from engine.tune.planned_writes import TunePlan
from engine.tune.present_values import read_values
from engine.tune.registry import BY_ID
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.udev_rules import SavedSetting
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.tune.hosts import make_host, plan_of

TABLE = "1 queue_if_no_path 0 1 1 service-time 0 2 2 8:0 1 1 8:16 1 1 "
GROUPS = "3 queue_if_no_path queue_mode mq 1 alua 2 2 service-time 0 1 2 8:0 1 5 round-robin 0 1 1 8:16 1 "
STATUS = "2 0 0 0 1 1 A 0 2 2 8:0 A 0 0 1 8:16 F 3 0 1 "
CACHE = (
    "8 27/4096 128 9/2048 0 128 0 20 0 9 0 1 writeback 2 migration_threshold 2048 "
    "mq 4 random_threshold 4 sequential_threshold 512 rw - "
)
MULTIPATH, CACHED = (252, 0), (252, 1)


@dataclass
class FakeMaps:
    """Maps that answer as the kernel does, and note what was done with them."""

    active: dict[Number, MapAnswer]
    status: dict[Number, str] = field(default_factory=dict)
    loaded: dict[Number, MapAnswer] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    refuse: str = ""
    rewrite: tuple[str, str] = ("", "")
    fail_resume: str = ""

    def refusal(self) -> str:
        return self.refuse

    def query(self, number: Number, *, table: bool, inactive: bool = False) -> MapAnswer | None:
        if self.refuse:
            return None
        found = (self.loaded if inactive else self.active).get(number)
        if found is None:
            return None
        flags = found.flags | (INACTIVE_PRESENT if number in self.loaded else 0)
        return replace(found, flags=flags, parameters=found.parameters if table else self.status.get(number, ""))

    def send(self, number: Number, message: str) -> None:
        self.done.append(message)
        key, _, value = message.partition(" ")
        words = self.status[number].split()
        if key in words:
            words[words.index(key) + 1] = value
            self.status[number] = " ".join(words)

    def load(self, number: Number, target: MapAnswer) -> None:
        self.done.append("load")
        self.loaded[number] = replace(target, parameters=target.parameters.replace(*self.rewrite))

    def clear(self, number: Number) -> None:
        self.done.append("clear")
        self.loaded.pop(number, None)

    def resume(self, number: Number) -> None:
        if self.fail_resume:
            raise LunscopeError(self.fail_resume)
        self.done.append("resume")
        self.active[number] = self.loaded.pop(number)


def answer(kind: str, parameters: str, flags: int = 0) -> MapAnswer:
    return MapAnswer(flags, 1, 0, 2097152, kind, parameters)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = make_host(tmp_path / "host")
    kernel.add(FakeDisk("dm-1", 252, 1, lean=True, attributes={"dm/name": "cached\n"}, at="virtual/block/dm-1"))
    return kernel


@pytest.fixture
def maps() -> FakeMaps:
    active = {MULTIPATH: answer("multipath", TABLE), CACHED: answer("cache", "")}
    return FakeMaps(active, {MULTIPATH: STATUS, CACHED: CACHE})


@pytest.fixture
def tree(kernel: FakeKernel, maps: FakeMaps) -> Iterator[KernelTree]:
    with KernelTree(kernel.sysfs) as tree:
        tree.maps = maps
        yield tree


def select(tree: KernelTree, *settings: str) -> TunePlan:
    return apply_plan(tree, plan_of(tree, list(settings), "mpatha"))


def test_a_selector_is_exchanged_and_restored_with_nothing_else_changed(tree: KernelTree, maps: FakeMaps) -> None:
    plan = select(tree, "path_selector=historical-service-time")
    changed = TABLE.replace("service-time 0 2 2 8:0 1 1 8:16 1 1", "historical-service-time 2 972 0 2 1 8:0 0 8:16 0")
    assert maps.active[MULTIPATH].parameters == changed
    assert maps.done == ["load", "resume", "fail_path 8:16"]
    assert (plan.writes[0].before, plan.writes[0].after) == ("service-time 0", "historical-service-time 2 972 0")
    assert restore(tree, plan).left == ()
    assert maps.active[MULTIPATH].parameters == TABLE


def test_groups_that_differ_are_restored_with_the_arguments_of_their_paths(tree: KernelTree, maps: FakeMaps) -> None:
    maps.active[MULTIPATH] = answer("multipath", GROUPS)
    plan = select(tree, "path_selector=queue-length 0")
    assert plan.writes[0].before == "service-time 0 {8:0 1 5}; round-robin 0 {8:16 1}"
    expected = "3 queue_if_no_path queue_mode mq 1 alua 2 2 queue-length 0 1 1 8:0 1 queue-length 0 1 1 8:16 1 "
    assert maps.active[MULTIPATH].parameters == expected
    assert restore(tree, plan).left == ()
    assert maps.active[MULTIPATH].parameters == GROUPS


def test_arguments_of_paths_are_set_by_device_number(tree: KernelTree, maps: FakeMaps) -> None:
    select(tree, "path_selector=service-time 0 {8:0 1 7, 8:16 1 1}")
    assert maps.active[MULTIPATH].parameters == TABLE.replace("8:0 1 1", "8:0 1 7")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("fastest", "is no path selector"),
        ("service-time 1 5", "is no path selector"),
        ("historical-service-time 1 1024", "is no path selector"),
        ("service-time 0 {8:0 1 1, 8:99 1 1}", "is for other path groups"),
        ("service-time 0 {8:0 1 1, 8:16 1 1}", "write it as 'service-time 0'"),
        ("service-time 0 {8:0 1 1, 8:16 1", "write each group as"),
    ],
)
def test_values_that_are_not_legal_change_nothing(tree: KernelTree, maps: FakeMaps, value: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        select(tree, f"path_selector={value}")
    assert maps.done == []


@pytest.mark.parametrize(
    ("table", "flags", "reason"),
    [
        (TABLE, SUSPENDED, "suspended: resume it first"),
        (TABLE.replace("  ", " ") + " ", 0, "cannot be written again"),
        (
            TABLE.replace("1 queue_if_no_path", "3 queue_if_no_path queue_mode bio"),
            0,
            "bio-based with queue_if_no_path",
        ),
    ],
)
def test_a_map_whose_ios_are_at_risk_is_refused(
    tree: KernelTree, maps: FakeMaps, table: str, flags: int, reason: str
) -> None:
    maps.active[MULTIPATH] = answer("multipath", table, flags)
    with pytest.raises(LunscopeError, match=reason):
        select(tree, "path_selector=round-robin")
    assert maps.done == []


def test_a_table_that_others_have_loaded_is_left(tree: KernelTree, maps: FakeMaps) -> None:
    maps.loaded[MULTIPATH] = answer("multipath", "0 0 1 1 round-robin 0 1 1 8:0 1 ")
    with pytest.raises(LunscopeError, match="another table is loaded"):
        select(tree, "path_selector=round-robin")
    assert maps.done == []


def test_a_table_that_the_kernel_makes_otherwise_is_dropped(tree: KernelTree, maps: FakeMaps) -> None:
    maps.rewrite = ("queue_if_no_path", "no_queue")
    with pytest.raises(LunscopeError, match="the kernel made another table of it"):
        select(tree, "path_selector=round-robin")
    assert (maps.done, maps.loaded) == (["load", "clear"], {})
    assert maps.active[MULTIPATH].parameters == TABLE


def test_an_exchange_that_was_interrupted_leaves_no_table_loaded(tree: KernelTree, maps: FakeMaps) -> None:
    maps.fail_resume = "interrupted"
    with pytest.raises(LunscopeError, match="interrupted"):
        select(tree, "path_selector=round-robin")
    assert (maps.done, maps.loaded) == (["load", "clear"], {})


def test_restoring_drops_the_loaded_table_of_a_killed_change_only(tree: KernelTree, maps: FakeMaps) -> None:
    plan = plan_of(tree, ["path_selector=round-robin"], "mpatha")
    maps.loaded[MULTIPATH] = answer("multipath", TABLE.replace("1 1 service", "1 1 round-robin 0 1 1 8:0 1 service"))
    restore(tree, plan, force=True)
    assert maps.done == []
    killed = parse_table(TABLE)
    assert killed is not None
    maps.loaded[MULTIPATH] = answer("multipath", killed.with_selectors("round-robin").text)
    restore(tree, plan, force=True)
    assert (maps.done, maps.loaded) == (["clear"], {})


def test_without_the_rights_the_reason_is_said(tree: KernelTree, maps: FakeMaps) -> None:
    maps.refuse = "/dev/mapper/control: Permission denied: run as root"
    with pytest.raises(LunscopeError, match=r"dm-0 path_selector: .*run as root"):
        select(tree, "path_selector=round-robin")


def test_arguments_of_a_cache_are_set_by_messages(tree: KernelTree, maps: FakeMaps) -> None:
    settings = ["dm_cache.migration_threshold=4096", "dm_cache.sequential_threshold=8"]
    plan = apply_plan(tree, plan_of(tree, settings, "cached"))
    assert maps.done == ["migration_threshold 4096", "sequential_threshold 8"]
    assert restore(tree, plan).left == ()
    assert cache_arguments(maps.status[CACHED])["migration_threshold"] == "2048"


@pytest.mark.parametrize("status", ["Fail", CACHE.replace(" rw ", " ro ")])
def test_a_cache_that_takes_no_messages_is_refused(tree: KernelTree, maps: FakeMaps, status: str) -> None:
    maps.status[CACHED] = status
    with pytest.raises(LunscopeError, match="takes no messages"):
        plan_of(tree, ["dm_cache.migration_threshold=4096"], "cached")


def test_values_of_maps_are_listed(tree: KernelTree) -> None:
    host = Host(tree)
    found = {
        (value.tunable.id, value.target.name): (value.value, value.default, value.legal)
        for value in read_values(host, host.select(["all"]), [one for one in BY_ID.values() if one.computed])
    }
    assert found == {
        ("path_selector", "dm-0"): ("service-time 0", "service-time 0", "|".join(plain_choices())),
        ("dm_cache.migration_threshold", "dm-1"): ("2048", "2048", "0.."),
        ("dm_cache.sequential_threshold", "dm-1"): ("512", "", "0.."),
        ("dm_cache.random_threshold", "dm-1"): ("4", "", "0.."),
    }


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("round-robin", "round-robin 0"),
        ("service-time  0", "service-time 0"),
        ("historical-service-time 1 500", "historical-service-time 2 500 0"),
        ("historical-service-time 0", "historical-service-time 2 972 0"),
        ("service-time  0 {8:0 1  5}; round-robin 0{8:16 1}", "service-time 0 {8:0 1 5}; round-robin 0 {8:16 1}"),
        ("io-affinity 0", "io-affinity 0"),
    ],
)
def test_values_that_mean_the_same_are_one(given: str, shown: str) -> None:
    assert canonical_selectors(given) == shown


@pytest.mark.parametrize("text", [TABLE, GROUPS, "0 0 0 0 ", "0 1 alua 1 1 io-affinity 0 1 1 8:0 00000000,0000000f "])
def test_a_table_is_written_as_it_was_read(text: str) -> None:
    table = parse_table(text)
    assert table is not None
    assert table.text == text
    assert table.with_selectors(table.selectors).text == text or not table.groups


@pytest.mark.parametrize("text", ["", "x", "1", "0 0 1 1 service-time", TABLE.replace("2 2", "3 2"), TABLE + "1 "])
def test_a_table_of_another_form_is_none(text: str) -> None:
    assert parse_table(text) is None
    assert unused_parts(text).messages == ()


def test_disabled_groups_stay_disabled() -> None:
    assert unused_parts("2 0 0 0 2 1 D 0 1 0 8:0 A 0 A 0 1 0 8:16 F 1 ").messages == (
        "fail_path 8:16",
        "disable_group 1",
    )


def test_selectors_are_saved_for_multipathd(tree: KernelTree) -> None:
    host = Host(tree)
    saved = [
        SavedSetting(BY_ID[name], target, value)
        for name, scope, value in (
            ("path_selector", "mpatha", "round-robin 0"),
            ("path_selector", "cached", "round-robin 0"),
            ("dm_cache.migration_threshold", "cached", "4096"),
        )
        for target in host.targets(BY_ID[name], host.select([scope]))
    ]
    made = configuration(tree, saved)
    (file,) = made.files
    assert file.text.splitlines()[1:] == [
        "multipaths {",
        "    multipath {",
        '        wwid "3600140500000000000000000000000aa"',
        '        path_selector "round-robin 0"',
        "    }",
        "}",
    ]
    assert file.belongs == "/etc/multipath/conf.d/lunscope-tune.conf"
    assert len(made.left_out) == 2
    assert made.left_out[1].endswith("at boot: dmsetup message cached 0 migration_threshold 4096")
