"""Rules of udev that match exactly the devices whose values they set, by what stays the same over boots (udev(7)).

A rule is by LUN where all present paths of the LUN have the value; otherwise by path: ENV{ID_PATH}, which the builtin
path_id of udev makes of the PCI function, the port of the target and the LUN, or the place in the device tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.errors import LunscopeError
from engine.text import safe_text
from engine.tune.disks import read_disks
from engine.tune.record import names_text
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind

_NO_PATTERN = re.compile(r"[A-Za-z0-9_.,:;@%=+/ -]+")
"""Text that means itself in a match of udev, which reads patterns and has quotes."""

_CLASSES = {
    TunedKind.SUBSYSTEM: "nvme-subsystem",
    TunedKind.CONTROLLER: "nvme",
    TunedKind.REMOTE_PORT: "fc_remote_ports",
}
_LUN_FILES = ("wwid", "device/wwid", "serial")
_NUMBERED_BY_DISCOVERY = re.compile(r"/(rport-|session|end_device-|expander-|ata[0-9]|usb[0-9])")
"""Folders in which the kernel numbers targets as it finds them."""
_OF_FC_PORT = 'KERNELS=="host*", PROGRAM=="/bin/cat /sys/class/fc_host/%b/port_name", RESULT=='
"""Attributes of a port are those of a class device beside the disk, which ATTRS of udev does not reach."""
_BY_NAME = "by name, which another device may have after a reboot"


class SavedSetting(Struct, frozen=True):
    """A value to set at boot."""

    tunable: Tunable
    target: Target
    value: str
    inode: int | None = None
    """Inode of the target's folder when it was set: another device of that name has another; None: as it is now."""


class _Match(Struct, frozen=True):
    """Conditions of a rule that tell one device from others, and what they are in words."""

    conditions: str
    words: str


class _Device(Struct, frozen=True):
    """One that is there, with its matches, those preferred first."""

    target: Target
    matches: tuple[_Match, ...]


def quotable(text: str) -> str:
    """Return text that stands for itself between quotes.

    Raises:
        LunscopeError: it does not.
    """
    if not _NO_PATTERN.fullmatch(text):
        raise LunscopeError(f"{safe_text(text)!r} cannot be written into a rule of udev: set it by hand")
    return text


def plain_text(text: str) -> str:
    """Return text that stands for itself between quotes, nothing for any other."""
    return text if _NO_PATTERN.fullmatch(text) else ""


def udev_rules(
    tree: KernelTree, settings: Sequence[SavedSetting], *, by_model: bool = False
) -> tuple[list[str], list[str]]:
    """Write rules in the order in which values must be set; and say what udev cannot set.

    With `by_model` SCSI disks are matched by vendor and model, so that a LUN that comes later gets the values, too.

    Raises:
        LunscopeError: no rule can tell a device from others that have another value; all of them are named.
    """
    kinds = dict.fromkeys(setting.target.subject for setting in settings)
    devices = {kind: _PresentDevices(tree, kind, settings, by_model=by_model) for kind in kinds}
    left_out: list[str] = []
    chosen: list[tuple[SavedSetting, _Match]] = []
    for setting in settings:
        match = devices[setting.target.subject].choose(setting)
        if match is None:
            name = f"{safe_text(setting.target.name)} {setting.tunable.id}"
            left_out.append(f"{name}: a hidden path, of which udev has no events: not saved")
        else:
            chosen.append((setting, match))
    conflicts = [line for present in devices.values() for line in present.conflicts]
    if conflicts:
        raise LunscopeError("; ".join(conflicts))
    return [line for rule in _rules(chosen) for line in rule.lines(devices)], left_out


class _Rule(Struct):
    """One rule with what it sets on which devices."""

    kind: TunedKind
    match: _Match
    values: dict[Tunable, str]
    targets: dict[str, Target]

    def lines(self, devices: Mapping[TunedKind, _PresentDevices]) -> Iterator[str]:
        """Write what it depends on and matches, and the rule."""
        names = names_text([target.name for target in self.targets.values()], most=8)
        yield f"# {self.match.words}: {names}"
        others = [target for target in devices[self.kind].matched(self.match) if target.folder not in self.targets]
        if others:
            yield f"# It also matches {names_text([other.name for other in others], most=8)}, alike already."
        assigned = (
            f'ATTR{{{tunable.file}}}="{quotable(_line(tunable, value))}"' for tunable, value in self.values.items()
        )
        yield ", ".join([_events_of(self.kind), self.match.conditions, *assigned])


def _line(tunable: Tunable, value: str) -> str:
    return value if tunable.subject in {TunedKind.DISK, TunedKind.SUBSYSTEM} else tunable.form.line(value, "")


def _events_of(kind: TunedKind) -> str:
    if kind is TunedKind.DISK:
        return 'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk"'
    return f'ACTION=="add|change", SUBSYSTEM=="{_CLASSES[kind]}"'


def _rules(chosen: Iterable[tuple[SavedSetting, _Match]]) -> list[_Rule]:
    """Put values with one match into one rule; by phase where a device has several, as one may reset another."""
    chosen = list(chosen)
    by_target: dict[str, set[str]] = {}
    for setting, match in chosen:
        by_target.setdefault(setting.target.folder, set()).add(match.conditions)
    is_split = any(len(matches) > 1 for matches in by_target.values())
    rules: dict[tuple[str, int], _Rule] = {}
    for setting, match in chosen:
        phase = setting.tunable.phase if is_split else 0
        rule = _Rule(setting.target.subject, match, {}, {})
        rule = rules.setdefault((match.conditions, phase), rule)
        rule.values[setting.tunable] = setting.value
        rule.targets[setting.target.folder] = setting.target
    return list(rules.values())


class _PresentDevices:
    """The devices of a kind that are there, by what a rule could match them by."""

    def __init__(self, tree: KernelTree, kind: TunedKind, settings: Sequence[SavedSetting], *, by_model: bool) -> None:
        self._tree = tree
        self._wanted = {(one.tunable.id, one.target.folder): one.value for one in settings}
        self._devices = {device.target.folder: device for device in _present(tree, kind, by_model=by_model)}
        self._by_match: dict[str, list[Target]] = {}
        for device in self._devices.values():
            for match in device.matches:
                self._by_match.setdefault(match.conditions, []).append(device.target)
        self.conflicts: list[str] = []

    def matched(self, match: _Match) -> list[Target]:
        """All devices that a match has."""
        return self._by_match.get(match.conditions, [])

    def choose(self, setting: SavedSetting) -> _Match | None:
        """Return the first match of a target whose other devices have the value, too; else note the conflict.

        None if udev does not see the target.
        """
        device = self._devices.get(setting.target.folder)
        if device is None:
            return None
        others: list[str] = []
        for match in device.matches:
            differing = self._differing(setting, match)
            if not differing:
                return match
            others = differing
        texts = names_text(others, most=8)
        conflict = f"{setting.tunable.id}: no rule of udev tells {setting.target.name} ({setting.value}) from {texts}"
        self.conflicts.append(f"{safe_text(conflict)}: give them one value, or undo the change of one")
        return device.matches[-1]

    def _differing(self, setting: SavedSetting, match: _Match) -> list[str]:
        """Devices of a match with another value, as in `sda (128)`."""
        found = []
        for other in self.matched(match):
            value = self._wanted.get((setting.tunable.id, other.folder))
            if value is None:
                value = setting.tunable.present(self._tree, other)
            if value not in {None, setting.value}:
                found.append(f"{other.name} ({value})")
        return found


def _present(tree: KernelTree, kind: TunedKind, *, by_model: bool) -> Iterator[_Device]:
    if kind is TunedKind.DISK:
        for disk in read_disks(tree):
            if not _is_hidden(tree, disk.folder):
                matches = _of_model(tree, disk.folder) if by_model else ()
                matches = matches or tuple(_of_disk(tree, disk.name, disk.folder))
                yield _Device(Target(kind, disk.name, disk.folder), matches)
        return
    of_kind = {TunedKind.SUBSYSTEM: _of_subsystem, TunedKind.CONTROLLER: _of_controller}.get(kind, _of_remote_port)
    for name in tree.names(f"class/{_CLASSES[kind]}"):
        folder = f"class/{_CLASSES[kind]}/{name}"
        yield _Device(Target(kind, name, folder), tuple(of_kind(tree, name, folder)))


def _is_hidden(tree: KernelTree, folder: str) -> bool:
    """Whether the kernel sends no events of a disk, as of a path of NVMe (GENHD_FL_HIDDEN)."""
    return tree.read(f"{folder}/hidden") == "1"


def _of_disk(tree: KernelTree, name: str, folder: str) -> Iterator[_Match]:
    if map_name := _plain(tree, f"{folder}/dm/name"):
        yield _Match(f'ATTR{{dm/name}}=="{map_name}"', "By the name of the map")
        return
    found = False
    for file in _LUN_FILES:
        if identity := _plain(tree, f"{folder}/{file}"):
            found = True
            yield _Match(f'ATTR{{{file}}}=="{identity}"', "By LUN, every path of it, also a later one")
            break
    if path := _id_path(tree, folder):
        found = True
        of_path = f'ENV{{ID_PATH}}=="{path}"'
        yield _Match(of_path, "By path: slot of the HBA, target and LUN")
        if port := _fc_port(tree, folder):
            of_port = f'{of_path}, {_OF_FC_PORT}"{port}"'
            yield _Match(of_port, "By path and WWPN of the HBA port, which may be a virtual one")
    if place := _place(folder):
        found = True
        yield _Match(f'DEVPATH=="{place}"', "By its place in the device tree: slot of the HBA, channel, target and LUN")
    if not found:
        yield _by_name(name)


def _of_model(tree: KernelTree, folder: str) -> tuple[_Match, ...]:
    """Match by what the SCSI device above a disk says of itself; nothing for others."""
    vendor, model = (_plain(tree, f"{folder}/device/{file}") for file in ("vendor", "model"))
    if not vendor or not model:
        return ()
    conditions = f'ATTRS{{vendor}}=="{vendor}", ATTRS{{model}}=="{model}"'
    return (_Match(conditions, "By vendor and model, every LUN of such storage, also a later one"),)


def _of_subsystem(tree: KernelTree, name: str, folder: str) -> Iterator[_Match]:
    nqn = _plain(tree, f"{folder}/subsysnqn")
    yield _Match(f'ATTR{{subsysnqn}}=="{nqn}"', "By its NQN") if nqn else _by_name(name)


def _of_controller(tree: KernelTree, name: str, folder: str) -> Iterator[_Match]:
    nqn, address = _plain(tree, f"{folder}/subsysnqn"), _plain(tree, f"{folder}/address")
    if not nqn:
        yield _by_name(name)
        return
    of_subsystem = f'ATTR{{subsysnqn}}=="{nqn}"'
    yield _Match(of_subsystem, "By subsystem, every controller of it, also a later one")
    if address:
        yield _Match(f'{of_subsystem}, ATTR{{address}}=="{address}"', "By subsystem and address")


def _of_remote_port(tree: KernelTree, name: str, folder: str) -> Iterator[_Match]:
    wwpn = _plain(tree, f"{folder}/port_name")
    if not wwpn:
        yield _by_name(name)
        return
    of_target = f'ATTR{{port_name}}=="{wwpn}"'
    yield _Match(of_target, "By WWPN, as every HBA port sees it, also a later one")
    place = os.path.relpath(os.path.realpath(tree.root / folder), tree.root)
    if _NO_PATTERN.fullmatch(place):
        general = re.sub(r"/(host|[rv]port-)[0-9][0-9:-]*", r"/\1*", f"/{place}")
        yield _Match(f'{of_target}, DEVPATH=="{general}"', "By WWPN and slot of the HBA")


def _by_name(name: str) -> _Match:
    return _Match(f'KERNEL=="{quotable(name)}"', _BY_NAME.capitalize())


def _plain(tree: KernelTree, path: str) -> str:
    """Read what a rule can match; empty where there is none."""
    return plain_text(tree.read(path) or "")


def _id_path(tree: KernelTree, folder: str) -> str:
    """Read ID_PATH in the database of udev, which is beside the tree: /run/udev of /sys."""
    number = tree.read(f"{folder}/dev") or ""
    if not re.fullmatch(r"[0-9]+:[0-9]+", number):
        return ""
    try:
        text = (tree.root.parent / "run/udev/data" / f"b{number}").read_text(errors="replace")
    except OSError:
        return ""
    path = next((line.removeprefix("E:ID_PATH=") for line in text.split("\n") if line.startswith("E:ID_PATH=")), "")
    return plain_text(path)


def _fc_port(tree: KernelTree, folder: str) -> str:
    """Read the WWPN of the FC port that a disk is reached by; several virtual ports have one PCI function (NPIV)."""
    hosts = re.findall(r"/(host[0-9]+)(?=/)", folder)
    return _plain(tree, f"class/fc_host/{hosts[-1]}/port_name") if hosts else ""


def _place(folder: str) -> str:
    """Write the path in the device tree of a SCSI disk without the numbers of this boot; empty if that is no place."""
    path = f"/{folder}"
    address = re.search(r"/[0-9]+(:[0-9]+:[0-9]+:[0-9]+)/block/", path)
    if address is None or _NUMBERED_BY_DISCOVERY.search(path) or not _NO_PATTERN.fullmatch(path):
        return ""
    general = re.sub(r"/(virtio|host)[0-9]+(?=/)", r"/\1*", path[: address.start()])
    general = re.sub(r"/target[0-9]+:", "/target*:", general)
    return f"{general}/*{address[1]}/block/*"
