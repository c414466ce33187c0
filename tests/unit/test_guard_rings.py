"""Files of an io_uring as fdinfo lists them, in the forms of several kernels."""

from __future__ import annotations

import pytest

from engine.hostfs.rings import RegisteredFiles, parse_registered

HEAD = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nSqMask:\t0x7\nSqThread:\t-1\n"
NEW, MIDDLE, OLD = "6.18.1", "6.8.0-60-generic", "5.15.0-122"


@pytest.mark.parametrize(
    ("release", "text", "names", "is_complete"),
    [
        (NEW, "UserFiles:\t1\n    0: /dev/loop38\nUserBufs:\t0\n", ["/dev/loop38"], True),
        (NEW, "UserFiles:\t64\n   63: /a\\040b\\134c\nUserBufs:\t0\n", ["/a b\\c"], True),
        (NEW, "UserFiles:\t2\n    0: /tmp/#12\\040(deleted)\n    1: socket:[7]\n", ["/tmp/#12 (deleted)"], True),
        (NEW, "UserFiles:\t3\n    0: anon_inode:[eventpoll]\n    1: /memfd:x\\040(deleted)\n", [], True),
        (NEW, "UserFiles:\t0\nUserBufs:\t0\n", [], True),
        (NEW, "UserFiles:\t64\nUserBufs:\t0\n", [], True),
        (NEW, "", [], False),
        (MIDDLE, "UserFiles:\t64\nUserBufs:\t0\n", [], False),
        (MIDDLE, "UserFiles:\t64\n    1: /dev/sda\nUserBufs:\t0\n", ["/dev/sda"], True),
        (OLD, "UserFiles:\t2\n    0: loop38\n    1: <none>\nUserBufs:\t0\n", ["loop38"], True),
        (OLD, "UserFiles:\t2\n    0: \n    1: disk.img\nUserBufs:\t0\n", ["disk.img"], True),
        (OLD, "UserFiles:\t2\nUserBufs:\t0\n", [], False),
        (OLD, "UserFiles:\t2\n    0: loop38\nUserBufs:\t0\n", ["loop38"], False),
        ("unknown", "UserFiles:\t2\nUserBufs:\t0\n", [], False),
    ],
)
def test_the_list_of_registered_files(release: str, text: str, names: list[str], is_complete: bool) -> None:
    found = parse_registered((HEAD + text + "PollList:\n").encode(), release)
    assert found == RegisteredFiles(tuple(names), is_complete)


def test_a_list_that_is_cut_off_is_not_complete() -> None:
    assert not parse_registered(b"UserFi", OLD).is_complete
    assert not parse_registered(b"UserFiles:\t3\n    0: a\n    1", OLD).is_complete
