"""Captured trees of real kernels: unpacked beside what the tools said of the same moment."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.graph import Graph
from collectors.model import Device
from collectors.tables.block.counters import BlockCollector
from collectors.topology.scanner import TopologyScanner


@dataclass(frozen=True)
class Capture:
    """One captured host."""

    commands: Path
    procfs: Path
    sysfs: Path

    def text(self, command: str) -> str:
        return (self.commands / command).read_text()

    def json(self, command: str) -> Any:
        return json.loads(self.text(command))

    def scan(self) -> tuple[dict[str, Device], Graph]:
        rows = BlockCollector(str(self.procfs), str(self.sysfs)).read().tables["disk"].rows
        return TopologyScanner(str(self.procfs), str(self.sysfs)).scan(rows)


def names() -> list[str]:
    """All captures with a sysfs tree; none where the lab is not there."""
    folder = Path(os.environ.get("LUNSCOPE_LAB", ""), "fixtures")
    return sorted(archive.parent.name for archive in folder.glob("*/sys.tar.xz"))


def unpack_tree(archive: Path, folder: Path) -> None:
    """Unpack a captured tree with all its links; the argument `filter` is missing in Python before 3.11.4."""
    with tarfile.open(archive) as tree:
        tree.extraction_filter = lambda member, _: member
        tree.extractall(folder)


def unpack(name: str, folder: Path) -> Capture:
    source = Path(os.environ["LUNSCOPE_LAB"], "fixtures", name)
    unpack_tree(source / "sys.tar.xz", folder)
    shutil.copytree(source / "proc", folder / "proc")
    (folder / "proc/self").mkdir(mode=0o755)
    (folder / "proc/self_mountinfo").rename(folder / "proc/self/mountinfo")
    return Capture(source / "commands", folder / "proc", folder / "sys")
