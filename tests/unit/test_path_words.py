"""What the screens say of paths: how many are optimized, how old their states are, and what is known of the far end."""

from __future__ import annotations

import pytest

from collectors.graph import Graph, Lun, Path, Port
from collectors.model import Device, Frame, HostFacts, Topology
from collectors.paths.groups import GroupBy
from collectors.rates import derive
from engine.replacing import replace
from tests.unit.raw_samples import disks, rows, sample
from tui.screens.paths.facts import facts_of, path_facts, port_facts
from tui.screens.paths.path_table import Only, PathTable, path_table
from tui.screens.paths.sentences import row_summary, summary

NAMES = ("sda", "sdb", "sdc", "sdd")
WHO = rows("dm-0", *NAMES)
LUN = WHO.keys[0]


def frame_of(*access: str) -> Frame:
    paths = tuple(
        Path(
            key, name, LUN, "p0", state="running", access=one, target_port="naa.5000", relative_port=2, port_group=258,
            controller="naa.5aaa group 258", priority=50,
        )
        for key, name, one in zip(WHO.keys[1:], NAMES, access, strict=False)
    )  # fmt: skip
    port = Port("p0", "nvme0", "nvme-tcp", serial="SN7", subsystem="nqn.sub", host_nqn="nqn.host", members=("nvme0",))
    graph = Graph(ports=(port,), luns=(Lun(LUN, "dm-0", "dm", "service-time"),), paths=paths)
    devices = {key: Device(key, name, "disk", 8, 0) for key, name in zip(WHO.keys, WHO.names, strict=True)}
    about = Topology(devices, HostFacts(), graph)
    both = [sample(at, disks=disks(WHO, *({} for _ in WHO.names)), topology=about) for at in (1, 2)]
    return replace(derive(*both), states_age_s=3.2)


def board_of(frame: Frame) -> PathTable:
    board = path_table(frame, GroupBy.LUN, Only.ALL, ())
    assert board is not None
    return board


@pytest.mark.parametrize(
    ("access", "cell", "sentence"),
    [
        (("active/optimized",) * 3 + ("active/non-optimized",), "3 opt 1 non", "3 optimized + 1 non-optimized"),
        (("non-optimized",) * 2, "2 non-opt", ""),
        (("optimized",) * 4, "4 active", ""),
        (("optimized", "standby"), "1 of 2 act", ""),
    ],
)
def test_a_lun_says_how_many_paths_the_storage_prefers(access: tuple[str, ...], cell: str, sentence: str) -> None:
    board = board_of(frame_of(*access))
    assert board.state_text(0) == cell
    words = row_summary(board, 0)
    assert f"of {len(access)} paths usable" in words
    assert ("optimized" in words) == bool(sentence)
    assert sentence in words


def test_the_state_of_a_path_fits_its_column() -> None:
    board = board_of(frame_of("non-optimized", "optimized"))
    assert board.state_text(1) == "non-opt"


def test_states_are_shown_with_their_age() -> None:
    frame = frame_of("optimized")
    words = summary(board_of(frame), 80)
    assert words.endswith(" (as of 3 s ago)")
    assert summary(board_of(frame), len(words) - 1) == words.removesuffix(" (as of 3 s ago)")
    facts = dict(path_facts(frame.topology.graph.paths[0], frame))
    assert facts["state"] == "running (as of 3 s ago)"
    assert dict(path_facts(frame.topology.graph.paths[0], replace(frame, states_age_s=0.4)))["state"].endswith("now)")
    unknown = replace(frame, states_age_s=float("nan"))
    assert dict(path_facts(frame.topology.graph.paths[0], unknown))["state"] == "running"


def test_a_path_and_its_port_are_named_with_all_their_names() -> None:
    frame = frame_of("optimized")
    facts = dict(path_facts(frame.topology.graph.paths[0], frame))
    assert (facts["port name"], facts["port group"]) == ("naa.5000", "258, relative port 2")
    assert (facts["controller"], facts["priority"]) == ("naa.5aaa group 258", "50")
    port = dict(port_facts(frame.topology.graph.ports[0], frame))
    assert (port["subsystem"], port["serial"], port["host NQN"]) == ("nqn.sub", "SN7", "nqn.host")


def test_a_device_is_reported_in_the_words_of_the_kernel() -> None:
    device = Device("k", "dm-0", "dm", 253, 0, persistent_id="mpath-36001", friendly_name="mpatha", slaves=("sda",))
    facts = dict(facts_of(device))
    assert (facts["alias"], facts["id"], facts["wwid"]) == ("mpatha", "mpath-36001", "36001")
    assert (facts["built on"], facts["used by"]) == ("sda", "-")
    assert facts["limits"].endswith("queue_depth n/a")


def test_nothing_to_show_is_said_of_what_was_asked() -> None:
    assert Only.NOT_ACTIVE.empty_text == "all paths active"
    assert Only.HOT.empty_text == "no path is hot"
