"""The only writer of kernel files: what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import engine.syscalls
from engine.errors import LunscopeError, UsageError
from engine.syscalls import open_beneath
from engine.tune.tree import KernelTree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sys/block/sda/queue").mkdir(parents=True)
    (tmp_path / "sys/block/sda/queue/nr_requests").write_text("256\n")
    (tmp_path / "outside").write_text("untouched\n")
    return tmp_path / "sys"


def test_a_value_is_one_line_of_an_existing_file(root: Path) -> None:
    with KernelTree(root) as tree:
        tree.write("block/sda/queue/nr_requests", "64")
        assert tree.read("block/sda/queue/nr_requests") == "64"
    assert (root / "block/sda/queue/nr_requests").read_text() == "64\n"


@pytest.mark.parametrize(
    "path",
    ["../outside", "block/../../outside", "/etc/passwd", "", "block//sda", "block/./sda", "block/sda\0", "block/sda/"],
)
def test_paths_that_are_not_plainly_below_the_root_are_refused(root: Path, path: str) -> None:
    with KernelTree(root) as tree, pytest.raises(UsageError, match="no path below"):
        tree.write(path, "1")
    assert (root.parent / "outside").read_text() == "untouched\n"


@pytest.mark.parametrize("target", ["../../../../outside", "/etc/hostname"])
def test_links_that_lead_out_of_the_root_are_refused(root: Path, target: str) -> None:
    (root / "block/sda/queue/link").symlink_to(target)
    (root / "block/out").symlink_to(root.parent)
    with KernelTree(root) as tree:
        with pytest.raises(LunscopeError, match="leads out of the tree, or is a link"):
            tree.write("block/sda/queue/link", "1")
        with pytest.raises(LunscopeError, match="leads out of the tree"):
            tree.write("block/out/outside", "1")
    assert (root.parent / "outside").read_text() == "untouched\n"


def test_a_folder_may_be_a_link_within_the_root_but_the_file_may_not(root: Path) -> None:
    (root / "class").symlink_to("block")
    (root / "block/sda/queue/link").symlink_to("nr_requests")
    with KernelTree(root) as tree:
        tree.write("class/sda/queue/nr_requests", "32")
        assert tree.read("block/sda/queue/nr_requests") == "32"
        with pytest.raises(LunscopeError, match="is a link"):
            tree.write("block/sda/queue/link", "1")


@pytest.mark.parametrize("text", ["", "1\n2", "1\0", "\x1b[2J", "é", "x" * 257])
def test_texts_that_are_no_line_are_refused(root: Path, text: str) -> None:
    with KernelTree(root) as tree, pytest.raises(UsageError, match="is no value"):
        tree.write("block/sda/queue/nr_requests", text)


def test_nothing_is_created(root: Path) -> None:
    with KernelTree(root) as tree, pytest.raises(LunscopeError, match="it is gone"):
        tree.write("block/sda/queue/absent", "1")
    assert not (root / "block/sda/queue/absent").exists()


def test_a_pipe_is_not_written(root: Path) -> None:
    os.mkfifo(root / "block/pipe")
    reader = os.open(root / "block/pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with KernelTree(root) as tree, pytest.raises(LunscopeError, match="not a regular file"):
            tree.write("block/pipe", "1")
    finally:
        os.close(reader)


def test_files_without_a_write_bit_are_refused_to_root_too(root: Path) -> None:
    (root / "block/sda/queue/nr_requests").chmod(0o444)
    with KernelTree(root) as tree:
        assert "read-only" in tree.refusal("block/sda/queue/nr_requests")
        assert "No such file" in tree.refusal("block/sda/queue/absent")


def test_without_openat2_the_resolved_path_is_checked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.syscalls, "_OPENAT2", 100_000)
    (root / "block/out").symlink_to(root.parent)
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(open_beneath(folder, "block/sda/queue/nr_requests", os.O_RDONLY))
        with pytest.raises(OSError, match="cross-device"):
            open_beneath(folder, "block/out/outside", os.O_RDONLY)
    finally:
        os.close(folder)
