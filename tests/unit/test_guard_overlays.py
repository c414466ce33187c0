"""Which files of its layers a name on an overlay stands for, from lines of mountinfo."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.hostfs.mounts import inodes_below, parse_mountinfo, read_overlays


def layer(folder: Path, name: str, file: str = "disk/image") -> Path:
    path = folder / name / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    return path


def inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def line(folder: Path, options: str, within: str = "/") -> str:
    return f"70 29 0:40 {within} {folder}/merged rw - overlay overlay rw,{options},workdir={folder}/work"


@pytest.mark.parametrize(
    "options",
    ["lowerdir={0}/a:{0}/b,upperdir={0}/c", "lowerdir+={0}/a,lowerdir+={0}/b,upperdir={0}/c", "lowerdir={0}/a::{0}/b"],
)
def test_every_layer_is_looked_into(tmp_path: Path, options: str) -> None:
    files = [layer(tmp_path, name) for name in "abc"]
    overlays = read_overlays(list(parse_mountinfo(line(tmp_path, options.format(tmp_path)))))
    known = files if "upperdir" in options else files[:2]
    assert inodes_below(overlays, f"{tmp_path}/merged/disk/image") == {inode(file) for file in known}
    assert not inodes_below(overlays, f"{tmp_path}/merged/disk/other")
    assert not inodes_below(overlays, f"{tmp_path}/elsewhere/disk/image")


def test_a_folder_of_an_overlay_bound_elsewhere(tmp_path: Path) -> None:
    file = layer(tmp_path, "a")
    overlays = read_overlays(list(parse_mountinfo(line(tmp_path, f"lowerdir={tmp_path}/a", within="/disk"))))
    assert inodes_below(overlays, f"{tmp_path}/merged/image") == {inode(file)}


def test_a_colon_in_the_name_of_a_layer(tmp_path: Path) -> None:
    file = layer(tmp_path, "with:colon")
    text = line(tmp_path, f"lowerdir={tmp_path}/with\\134:colon")
    assert inodes_below(read_overlays(list(parse_mountinfo(text))), f"{tmp_path}/merged/disk/image") == {inode(file)}


def test_the_overlay_of_a_container_by_the_root_of_its_process(tmp_path: Path) -> None:
    file = layer(tmp_path, "a")
    root = f"/proc/{os.getpid()}/root"
    mounts = list(parse_mountinfo(line(tmp_path, f"lowerdir={tmp_path}/a"), "pid 1 (x)", root))
    assert inodes_below(read_overlays(mounts), f"{root}{tmp_path}/merged/disk/image") == {inode(file)}
