"""Verdicts on paths: the sick one is named, and healthy ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.model import Frame, Topology
from collectors.rates import derive
from collectors.tables.block.path_verdict import judge_paths, path_verdicts
from engine.replacing import replace
from tests.unit.raw_samples import disks, sample
from tests.unit.test_block_tables import WHO, did, frame, topology


def with_paths(access: tuple[str, str] = ("", ""), policy: str = "") -> Topology:
    about = topology()
    paths = tuple(replace(path, access=access[int(path.port[-1])]) for path in about.graph.paths)
    luns = tuple(replace(lun, policy=policy) for lun in about.graph.luns)
    return Topology(about.devices, about.host, replace(about.graph, paths=paths, luns=luns))


def test_the_slow_path_is_named_with_its_share() -> None:
    found = frame({"sd0h0": did(390, 1, 400), "sd0h1": did(610, 4, 900)}, with_paths())
    assert list(path_verdicts(found)) == ["path sd0h1 carries 61 % of dm-0 and its await is 4.0x its peers'"]


def test_a_path_that_is_allowed_to_be_slower_is_not_sick() -> None:
    about = with_paths(("optimized", "non-optimized"))
    assert list(path_verdicts(frame({"sd0h0": did(390, 1, 400), "sd0h1": did(610, 4, 900)}, about))) == []


def test_few_ios_and_small_differences_are_chance() -> None:
    assert list(path_verdicts(frame({"sd0h0": did(390, 1, 400), "sd0h1": did(9, 40, 400)}, with_paths()))) == []
    quick = {"reads": 1000, "read_ms": 100, "busy_ms": 100}
    slower = {"reads": 1000, "read_ms": 300, "busy_ms": 300}
    assert list(path_verdicts(frame({"sd0h0": quick, "sd0h1": slower}, with_paths()))) == []


def test_an_even_policy_that_is_not_even() -> None:
    about = with_paths(policy="round-robin")
    load = {"sd0h0": did(1000, 1, 900)}
    assert list(path_verdicts(frame(load, about))) == ["path sd0h0 carries 100 % of dm-0, 2.0x its part"]
    assert list(path_verdicts(frame(load, with_paths(policy="service-time")))) == []
    assert list(path_verdicts(frame({"sd0h0": did(500, 1, 9), "sd0h1": did(480, 1, 9)}, about))) == []


def test_nothing_is_said_without_an_interval_or_paths() -> None:
    assert list(path_verdicts(frame({}, Topology()))) == []
    assert list(path_verdicts(frame({}, with_paths()))) == []


def test_only_odd_paths_are_marked_in_the_rows_of_the_table() -> None:
    found = frame({"sd0h0": did(390, 1, 400), "sd0h1": did(610, 4, 900), "sd1h0": did(500, 1, 500)}, with_paths())
    judged = judge_paths(found)
    assert judged is not None
    names = found.tables["paths"].rows.names
    assert [names[row] for row in judged.odd] == ["sd0h1"]
    assert judged.sick_times[names.index("sd0h1")] == pytest.approx(4.0)
    assert not judged.by_service.any()


def test_a_path_of_which_nothing_is_known_leaves_its_lun_unjudged() -> None:
    blind = replace(with_paths(), devices={**topology(uncounted=("sd0h0",)).devices})
    assert list(path_verdicts(frame({"sd0h1": did(610, 4, 900)}, blind))) == []


def holding(before: int, after: int, of: dict[str, dict[str, int]], elapsed_s: float = 1.0) -> Frame:
    """An interval at whose ends sd0h1 had so many I/Os outstanding."""
    first = disks(WHO, *({"in_flight_now": before if name == "sd0h1" else 0} for name in WHO.names))
    then = {"sd0h1": {"in_flight_now": after}, **of}
    last = disks(WHO, *(then.get(name, {}) for name in WHO.names))
    about = with_paths()
    return derive(sample(1, disks=first, topology=about), sample(1 + elapsed_s, disks=last, topology=about))


def test_a_path_that_holds_ios_and_completes_none_is_sick_beyond_measure() -> None:
    found = holding(3, 4, {"sd0h0": did(500, 1, 400)})
    assert list(path_verdicts(found)) == [
        "path sd0h1 carries 0 % of dm-0: 3 I/Os are outstanding and none completed in 1.0 s, while its peers work"
    ]
    judged = judge_paths(found)
    assert judged is not None
    assert np.isinf(judged.sick_times[found.tables["paths"].rows.names.index("sd0h1")])


@pytest.mark.parametrize(
    ("before", "after", "peers", "elapsed_s"),
    [
        (3, 0, 500, 1.0),
        (0, 3, 500, 1.0),
        (3, 4, 0, 1.0),
        (3, 4, 500, 0.2),
    ],
    ids=["gave them up", "got them just now", "nobody works", "too short"],
)
def test_no_stall(before: int, after: int, peers: int, elapsed_s: float) -> None:
    assert list(path_verdicts(holding(before, after, {"sd0h0": did(peers, 1, 100)}, elapsed_s))) == []
