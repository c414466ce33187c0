"""Sizes and factors as a user has them, over several files whose law says what is right: `make truth`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.kernel.forked_command import lunscope
from tests.truth.law_files import LawFiles, law_files, where_the_law_holds
from tests.unit.rate_search.law_device import Law

pytestmark = [needs.law_files, needs.truth, pytest.mark.timeout(1200)]

_MOST_S = 1100.0
DISK = Law(4, 0.008)
"""500 IOPS."""
DISKS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LawFiles]:
    """Four files of one law."""
    with law_files(tmp_path_factory.mktemp("disks"), dict.fromkeys(DISKS, DISK)) as served:
        yield served


@pytest.fixture
def slow_files(tmp_path: Path) -> Iterator[LawFiles]:
    """Four files so slow that a busy host does not change their law."""
    with law_files(tmp_path, dict.fromkeys(DISKS, Law(3, 0.03))) as served:
        yield served


def _asked(files: LawFiles, *arguments: str) -> dict[str, Any]:
    targets = [word for name in DISKS for word in ("--target", files.path(name))]
    done = lunscope("sweep", *targets, "--tier", "kernel", "--json", *arguments, timeout_s=_MOST_S)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["complete"]
    return document


@pytest.fixture(scope="module")
def swept(files: LawFiles, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A sweep for the first need, and its file."""
    document = _asked(files, "--need", "1300 IOPS, mean<10ms", "--vary", "qd=1,2,3,4,6,8,16")
    path = tmp_path_factory.mktemp("sizes") / "sizes.json"
    path.write_text(json.dumps(document))
    return path, document["sizing"]


def _sized(path: Path, need: str) -> dict[str, Any]:
    done = lunscope("sweep", "--need", need, "--from", str(path), "--json")
    assert done.returncode == 0, done.stderr
    (load,) = json.loads(done.stdout)["loads"]
    found: dict[str, Any] = load
    return found


def test_fewest_disks_and_their_depth_are_those_of_the_law(files: LawFiles, swept: tuple[Path, dict[str, Any]]) -> None:
    (load,) = swept[1]["loads"]
    with where_the_law_holds(files):
        assert load["verdict"] == "found", load
        assert (load["size"]["disks"], load["size"]["queue_depth"]) == (3, 4), load
        assert load["size"]["iops"] == pytest.approx(3 * DISK.maximum, rel=0.05)
        assert load["size"]["latency_us"]["mean"] == pytest.approx(8000, rel=0.05)
        assert load["size"]["highest_queue_depth"] == 5


@pytest.mark.parametrize("share", [0.4, 1.8, 3.3, 4.6, 7.4])
def test_other_needs_are_read_from_the_file(share: float, files: LawFiles, swept: tuple[Path, dict[str, Any]]) -> None:
    found = _sized(swept[0], f"{share * DISK.maximum:.0f} IOPS")
    with where_the_law_holds(files):
        assert found["verdict"] == ("found" if share <= len(DISKS) else "extrapolated"), found
        assert math.ceil(0.95 * share) <= found["size"]["disks"] <= math.ceil(1.05 * share), found


@pytest.mark.parametrize(
    ("need", "verdict"),
    [("6000 IOPS", "beyond"), ("100 IOPS, mean<7ms", "impossible")],
)
def test_what_cannot_be_said_is_refused(
    need: str, verdict: str, files: LawFiles, swept: tuple[Path, dict[str, Any]]
) -> None:
    found = _sized(swept[0], need)
    with where_the_law_holds(files):
        assert (found["verdict"], found["size"]) == (verdict, None), found


def test_factors_have_the_signs_of_the_law(slow_files: LawFiles) -> None:
    """Beyond the knee, at 8 of each disk: more disks and striping double, more depth waits."""
    (signs, _, _) = _asked(slow_files, "--preset", "factors", "--runtime", "2s")["tables"]
    rows = {row["factor"]: row for row in signs["rows"]}
    keys = ("iops_effect", "megabytes_per_s_effect", "mean_ms_effect", "average_peak_ms_effect")
    found = {name: [_sign(row[key]) for key in keys] for name, row in rows.items()}
    with where_the_law_holds(slow_files):
        assert found["disks"][:3] == pytest.approx([100, 100, 0], abs=6)
        assert found["striping"][:3] == pytest.approx([100, 100, -50], abs=6)
        assert found["queue depth"][:3] == pytest.approx([0, 0, 100], abs=6)
        assert found["threads"][:3] == [0, 0, 0]
        assert found["block size"][:3] == pytest.approx([0, 100, 0], abs=6)


def _sign(cell: str) -> float:
    return math.nan if cell == "undecided" else 0.0 if cell == "none" else float(cell.removesuffix(" %"))
