"""procfs and sysfs trees of which entries were changed, removed, added or led elsewhere, and uevents of any name."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from collectors.doctor import examine
from collectors.kernel.hotplug import snapshot
from collectors.model import Sample, Step, Table, Topology
from collectors.reports.formats.text import section_lines
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.sampling.reading_settings import ReadingSettings
from collectors.session.encoder import Encoder, ObjectWriter
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.error_readers import PathErrors, PortErrors
from collectors.tables.host.facts import read_host_facts
from collectors.tables.host.reader import HostCollector
from collectors.tables.process.reader import ProcessScanner
from collectors.tables.tape.reader import TapeCollector
from collectors.topology.scanner import TopologyScanner
from engine.errors import LunscopeError
from engine.tune.planned_writes import make_plan, parse_settings
from engine.tune.present_values import alike, read_values
from engine.tune.registry import TUNABLES
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import (
    FakeScsi,
    add_fc_disk,
    add_fc_host,
    add_nvme_controller,
    add_nvme_namespace,
    add_tape,
)
from tests.fuzz.campaign import assert_printable, campaign
from tests.fuzz.mutate import ODD_TEXT, damaged, text_damaged
from tui.headless.tune_text import list_section, plan_section

Change = tuple[str, str, str]
"""A path below the roots, what is done to it, and the text for it."""

_NAMES = (
    *("sda", "sdzz", "\x1b[2J", "\u00b2", "\u0663", "dm-0", "nvme9n9", "nvme0c0n1", "host99", "a" * 200, "st0"),
    *("7", "loop!0", "\udcff"),
)
_LINKS = (".", "..", "../../../../..", "/", "/dev/null", "nowhere", "/proc/self/root", "\x1b[31m", "../block")
_WORDS = (*_NAMES, "8:0", "253:1", "-1", "running", "0x10", "active/optimized", "none", "4294967296", "mpath-36000")


def run(seed: int, count: int, seconds: float) -> int:
    """Try changed trees."""
    return campaign("trees", make, attempt, seed, count, seconds)


def make(dice: random.Random) -> bytes:
    """Return changes as JSON, with the names that a uevent brings."""
    entries = list(_tree().entries)
    changes = [_change(dice, dice.choice(entries)) for _ in range(dice.choice((1, 1, 2, 4, 20)))]
    uevents = [dice.choice((*_NAMES, *ODD_TEXT)) for _ in range(dice.randrange(3))]
    return json.dumps([changes, uevents]).encode()


def _change(dice: random.Random, path: str) -> Change:
    content = _tree().entries[path]
    match dice.randrange(12):
        case 0:
            return path, "remove", ""
        case 1:
            return path, "link", dice.choice(_LINKS)
        case 2:
            return path, "folder", ""
        case 3:
            parent = path if content is None else path.rpartition("/")[0]
            return f"{parent}/{dice.choice(_NAMES)}", dice.choice(("write", "folder", "link")), dice.choice(_LINKS)
        case _:
            text = (content or b"").decode("utf-8", "surrogateescape")
            if dice.random() < 0.2:
                text = damaged(content or b"", dice).decode("utf-8", "surrogateescape")
            elif dice.random() < 0.5:
                text = dice.choice(ODD_TEXT)
            else:
                text = text_damaged(text, _WORDS, dice)
            return path, "write", text


def attempt(data: bytes) -> None:
    """Read all there is of the tree twice, as the verbs do, and show it."""
    changes, uevents = json.loads(data)
    tree = _tree()
    try:
        for path, action, text in changes:
            with suppress(OSError, ValueError):
                tree.change(path, action, text)
        with suppress(LunscopeError):
            _read(tree.root / "proc", tree.root / "sys", uevents)
    finally:
        tree.restore([path for path, _, _ in changes])


def _read(procfs: Path, sysfs: Path, uevents: Sequence[str]) -> None:
    roots = str(procfs), str(sysfs)
    block = BlockCollector(*roots)
    host, processes, tapes = HostCollector(roots[0]), ProcessScanner(roots[0]), TapeCollector(roots[1])
    scanner = TopologyScanner(*roots, settings=ReadingSettings())
    try:
        samples = []
        for number, changed in enumerate((None, frozenset(uevents))):
            with suppress(OSError):  # of which the verbs make a line that names the file
                tables = dict(block.read().tables)
                devices, graph = scanner.scan(tables["disk"].rows, changed)
                topology = Topology(devices, read_host_facts(roots[0]), graph)
                readings = (host.read().tables, tapes.read().tables)
                tables |= {name: table for found in readings for name, table in found.items()}
                errors: tuple[Table | None, ...] = PathErrors(roots[1]).take(graph), PortErrors(roots[1]).take(graph)
                tables |= {table.schema.name: table for table in errors if table is not None}
                samples.append(Sample((number + 1) * 10**9, (number + 1) * 10**9, topology, tables))
            with suppress(OSError):  # which the thread that scans leaves to its owner
                processes.scan()
        with suppress(OSError):  # which ends the watching with a notice
            snapshot(roots[1], frozenset(uevents))
    finally:
        block.close()
    _show(samples)
    examine(procfs, sysfs)
    _tune(sysfs)


def _tune(sysfs: Path) -> None:
    """List all tunables, and plan a change of each scope."""
    with KernelTree(sysfs) as tree:
        host = Host(tree)
        values = read_values(host, host.select(["all"]), TUNABLES)
        assert_printable(list(section_lines([list_section(alike(values))])))
        for scope in ("lun:*", "type:scsi", "type:multipath", "vendor:*", "port:host0", "sda"):
            with suppress(LunscopeError):
                plan = make_plan(host, parse_settings(["nr_requests=64", "scheduler=none"]), host.select([scope]))
                assert_printable(list(section_lines([plan_section(plan)])))


def _show(samples: Sequence[Sample]) -> None:
    for sample in samples:
        json.dumps(scan_document(sample.topology))
        assert_printable(list(tree_lines(sample.topology)))
    if len(samples) == 2:
        steps = [Step(None, samples[0]), Step(samples[0], samples[1])]
        options = ReportOptions(("disks", "paths", "hbas", "tapes"), all_disks=True, split=True)
        assert_printable(list(report_text(steps, options)))
        assert_printable(list(report_json(steps, ReportOptions(all_disks=True))))
    encoder = Encoder(ObjectWriter())
    for sample in samples:
        encoder.encode(sample, gap=False)


class _Tree:
    """A tree of everything there is, put back after each change."""

    def __init__(self) -> None:
        # Kept for the whole run: making it takes longer than reading it.
        self._folder = tempfile.TemporaryDirectory(prefix="lunscope-fuzz-")
        self.root = Path(self._folder.name).resolve()
        _build(FakeKernel(self.root))
        self._sound = {path: _state(self.root / path) for path in self._walk()}
        self.entries = {path: content for path, (kind, content) in self._sound.items() if kind != "link"}
        """Content of each file by path, None for a folder."""

    def change(self, path: str, action: str, text: str) -> None:
        """Do one thing to an entry; its parents stay, and nothing is done outside of the tree, where links may lead."""
        place = self._inside(path)
        if action == "write" and (place.is_symlink() or not place.is_file()) and os.path.lexists(place):
            return
        if action != "write":
            _remove(place)
        if action == "folder":
            place.mkdir()
        elif action == "link":
            place.symlink_to(text)
        elif action == "write":
            place.write_bytes(text.encode("utf-8", "surrogateescape"))

    def restore(self, paths: Sequence[str]) -> None:
        """Put back everything at and below these paths, those further up first."""
        for path in sorted(paths, key=lambda path: path.count("/")):
            with suppress(OSError, ValueError):
                _remove(self._inside(path))
            for known, (kind, content) in self._sound.items():
                if known == path or known.startswith(f"{path}/"):
                    _put_back(self.root / known, kind, content)

    def _inside(self, path: str) -> Path:
        """Return an entry whose folder is in the tree, not where a link leads.

        Raises:
            ValueError: it is elsewhere.
        """
        place = self.root / path
        folder = place.parent
        if place == self.root or os.path.realpath(folder) != str(folder) or not folder.is_relative_to(self.root):
            raise ValueError(path)
        return place

    def _walk(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self.root):
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in (*folders, *files)]  # noqa: PTH118 text
        return found


def _state(path: Path) -> tuple[str, bytes | None]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    return ("folder", None) if path.is_dir() else ("file", path.read_bytes())


def _put_back(path: Path, kind: str, content: bytes | None) -> None:
    if kind == "folder":
        path.mkdir(exist_ok=True)
    elif kind == "link":
        if not path.is_symlink():
            path.symlink_to(os.fsdecode(content or b""))
    else:
        path.write_bytes(content or b"")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _build(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=2, access=("active/optimized", "standby")).build()
    folder = add_fc_host(kernel, 7, "0x10000090fa000001")
    add_fc_disk(kernel, "sdx", folder, 7, target_wwpn="0x5000000000000aaa", minor=208)
    folders = [add_nvme_controller(kernel, number) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders, ("optimized", "inaccessible"))
    kernel.add_partition("sdx", 1)
    kernel.add(FakeDisk("md0", 9, 0, attributes={"md/level": "raid0\n"}, at="virtual/block/md0", slaves=["sdx1"]))
    add_tape(kernel, 0)
    kernel.write_process(42, b"fuzz \x1b[2J", read_bytes=5)
    proc = {
        "1/mountinfo": "30 1 9:0 / /srv rw - xfs /dev/md0 rw\n",
        "swaps": "Filename Type Size Used Priority\n/dev/sda partition 100 0 -2\n",
        "meminfo": "MemTotal: 1000 kB\nMemAvailable: 500 kB\nDirty: 1 kB\n",
        "stat": "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
        "pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n",
        "sys/kernel/osrelease": "6.18.0\n",
        "sys/kernel/hostname": "node\n",
        "sys/kernel/random/boot_id": "0000\n",
    }
    for name, text in proc.items():
        kernel.write_proc(name, text)


@functools.cache
def _tree() -> _Tree:
    return _Tree()
