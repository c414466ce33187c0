"""Paths that vanish are remembered until they are back; going back in time forgets."""

from __future__ import annotations

from collectors.graph import Graph, Lun, Path
from collectors.model import Frame, Topology
from engine.replacing import replace
from tui.history.gone_paths import GonePaths

PATHS = tuple(Path(f"sd{way}", f"sd{way}", "dm-0", f"p{way}", "t", f"{way}:0:0:0") for way in range(3))
WHOLE = Graph(luns=(Lun("dm-0", "dm-0", "dm"), Lun("sdx", "sdx")), paths=(*PATHS, Path("sdx", "sdx", "sdx")))


NOW = 10**18


def frame(second: int, graph: Graph) -> Frame:
    return Frame(second, second, 1.0, {}, Topology(graph=graph))


def without(*names: str) -> Graph:
    return replace(WHOLE, paths=tuple(path for path in WHOLE.paths if path.name not in names))


def gone(paths: GonePaths) -> list[tuple[str, int]]:
    return [(one.path.name, one.since_ns) for one in paths.at(NOW).of_lun("dm-0")]


def test_a_path_that_vanishes_is_listed_with_its_time_until_it_is_back() -> None:
    paths = GonePaths()
    for second, graph in enumerate((WHOLE, WHOLE, without("sd1"), without("sd1", "sd2"), without("sd1"))):
        paths.follow(frame(second, graph))
    assert gone(paths) == [("sd1", 2)]
    back = replace(WHOLE, paths=(*without("sd1").paths, replace(PATHS[1], key="sdq", name="sdq")))
    paths.follow(frame(9, back))
    assert (gone(paths), len(paths.at(NOW))) == ([], 0)


def test_what_vanishes_with_its_lun_is_not_a_path_that_is_missing() -> None:
    paths = GonePaths()
    paths.follow(frame(0, WHOLE))
    paths.follow(frame(1, Graph()))
    assert len(paths.at(NOW)) == 0
    paths.follow(frame(2, without("sdx")))
    paths.follow(frame(3, without("sdx", "sd0", "sd1", "sd2")))
    assert [name for name, _ in gone(paths)] == ["sd0", "sd1", "sd2"]


def test_going_back_forgets_what_had_not_happened() -> None:
    paths = GonePaths()
    for second, graph in ((0, WHOLE), (5, without("sd0")), (9, without("sd0", "sd1"))):
        paths.follow(frame(second, graph))
    assert gone(paths) == [("sd0", 5), ("sd1", 9)]
    paths.follow(frame(7, without("sd0")))
    assert gone(paths) == [("sd0", 5)]
    paths.follow(frame(1, WHOLE))
    assert gone(paths) == []


def test_what_was_lost_is_known_of_earlier_times() -> None:
    paths = GonePaths()
    for second, graph in ((0, WHOLE), (5, without("sd0")), (9, without("sd0", "sd1")), (12, WHOLE)):
        paths.follow(frame(second, graph))
    counts = [len(paths.at(second)) for second in (0, 4, 5, 8, 9, 11, 12, 99)]
    assert counts == [0, 0, 1, 1, 2, 2, 0, 0]
