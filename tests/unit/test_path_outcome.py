"""Failures of the engine's paths: put together from counters, and shown at the top level of a result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.results.layout_result import PathOutcome, path_outcome_documents
from engine.running.counter_reader import PATH_ERRORS, PATH_FAILED, PATH_TARGET, PathHistory

NAMES = ("/dev/sda", "/dev/sdb", "/dev/sdc")


def counters(errors: tuple[int, ...], failed: tuple[int, ...]) -> NDArray[np.uint64]:
    values = np.zeros((3, 12), np.uint64)
    values[:, PATH_ERRORS], values[:, PATH_FAILED], values[:, PATH_TARGET] = errors, failed, (0, 0, 1)
    return values


def history(*moments: tuple[float, tuple[int, ...], tuple[int, ...]]) -> tuple[PathOutcome, ...]:
    found = PathHistory()
    for elapsed_s, errors, failed in moments:
        found.observe(counters(errors, failed), ("lun0", "lun1"), NAMES, elapsed_s)
    return found.outcomes


def test_each_failure_has_its_own_times_and_retries() -> None:
    first, second = history(
        (0.5, (0, 0, 0), (0, 0, 0)),
        (1.0, (0, 2, 0), (0, 1, 0)),
        (1.5, (0, 3, 0), (0, 1, 0)),
        (3.0, (0, 3, 0), (0, 0, 0)),
        (4.0, (0, 8, 0), (0, 1, 0)),
    )
    assert (first.target, first.path, first.failed_s, first.returned_s, first.ios_retried) == (
        *("lun0", "/dev/sdb", 1.0, 3.0, 3),
    )
    assert (second.path, second.failed_s, second.returned_s, second.ios_retried) == ("/dev/sdb", 4.0, None, 5)


def test_retries_that_end_after_the_path_answered_belong_to_its_failure() -> None:
    (only,) = history((1.0, (0, 0, 1), (0, 0, 1)), (2.0, (0, 0, 4), (0, 0, 0)))
    assert (only.target, only.path, only.ios_retried) == ("lun1", "/dev/sdc", 4)


def test_a_load_without_paths_has_no_failures() -> None:
    found = PathHistory()
    found.observe(np.zeros((0, 12), np.uint64), ("lun0",), (), 1.0)
    assert found.outcomes == ()


def test_the_document_has_times_for_programs_and_the_lines_for_people() -> None:
    back = PathOutcome("lun0", "/dev/sdb", 1_700_000_000_123_000_000, 1.25, 2, 1_700_000_004_000_000_000, 5.0)
    gone = PathOutcome("lun0", "/dev/sda", 1_700_000_000_000_000_000, 1.0, 1)
    document, other = path_outcome_documents((back, gone))
    assert document == {
        "target": "lun0",
        "path": "/dev/sdb",
        "failed_at": "2023-11-14T22:13:20.123+00:00",
        "failed_s": 1.25,
        "ios_retried": 2,
        "returned_at": "2023-11-14T22:13:24.000+00:00",
        "returned_s": 5.0,
    }
    assert (other["returned_at"], other["returned_s"]) == (None, None)
    first, second = back.text, gone.text
    assert "2 I/Os were sent again, it answered again at " in first
    assert first.endswith("3.8 s later")
    assert second.endswith("1.0 s after the start: 1 I/O was sent again, it did not answer again")
