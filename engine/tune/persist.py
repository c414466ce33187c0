"""Values written as the configuration that sets them at boot: udev rules, systemd drop-ins, multipath.conf, modules.

udev(7), systemd.resource-control(5), modprobe.d(5), sysctl.d(5), multipath.conf(5).
Only text is made here; nothing is installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError, UsageError, words_of
from engine.text import safe_text
from engine.tune.forms import NO_LIMIT
from engine.tune.record import ChangeRecord
from engine.tune.tree import KernelTree
from engine.tune.tunable import TunedKind
from engine.tune.udev_rules import SavedSetting, plain_text, udev_rules
from engine.tune.write_back import Sysctl

UDEV_FILE = "99-lunscope-tune.rules"
MODULE_FILE = "lunscope-tune.modprobe.conf"
SYSCTL_FILE = "lunscope-tune.sysctl.conf"
MULTIPATH_FILE = "lunscope-tune.multipath.conf"
_DROP_IN = "50-lunscope-tune.conf"

_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]+\.(service|slice|mount|socket|swap)")
_SECTION = {"service": "Service", "slice": "Slice", "mount": "Mount", "socket": "Socket", "swap": "Swap"}
_SETTING = {
    "io.max.rbps": "IOReadBandwidthMax",
    "io.max.wbps": "IOWriteBandwidthMax",
    "io.max.riops": "IOReadIOPSMax",
    "io.max.wiops": "IOWriteIOPSMax",
    "io.weight": "IOWeight",
    "io.weight.device": "IODeviceWeight",
    "io.latency": "IODeviceLatencyTargetSec",
    "blkio.throttle.read_bps": "IOReadBandwidthMax",
    "blkio.throttle.write_bps": "IOWriteBandwidthMax",
    "blkio.throttle.read_iops": "IOReadIOPSMax",
    "blkio.throttle.write_iops": "IOWriteIOPSMax",
}


class ConfigurationFile(Struct, frozen=True):
    """A file, with where it belongs."""

    name: str
    """Relative, as it is written below a folder."""
    belongs: str
    text: str


class Configuration(Struct, frozen=True):
    """All files, and what could not be written into one."""

    files: tuple[ConfigurationFile, ...]
    left_out: tuple[str, ...]


def settings_of(records: Iterable[ChangeRecord]) -> list[SavedSetting]:
    """List what changes have set; of two values of one target the later one."""
    found: dict[tuple[str, str], SavedSetting] = {}
    for write in (write for record in records for write in record.plan.writes):
        found[write.tunable.id, write.target.key] = SavedSetting(write.tunable, write.target, write.after, write.inode)
    return list(found.values())


def configuration(tree: KernelTree, settings: Iterable[SavedSetting], *, by_model: bool = False) -> Configuration:
    """Write settings as configuration files; with `by_model` one rule for all SCSI disks of a vendor and model.

    Raises:
        LunscopeError: a rule of udev would set another value than was set on a device; the devices are named.
    """
    ordered = sorted(settings, key=lambda setting: setting.tunable.phase)
    left_out: list[str] = []
    by_udev: list[SavedSetting] = []
    drop_ins: dict[str, list[str]] = {}
    options: list[str] = []
    sysctls: list[str] = []
    maps: dict[str, str] = {}
    for setting in ordered:
        if setting.inode not in {None, tree.inode(setting.target.folder)}:
            left_out.append(f"{safe_text(setting.target.name)} {setting.tunable.id}: it is gone, or another: not saved")
            continue
        if setting.target.subject is TunedKind.NFS_CLIENT:
            left_out.append(f"{setting.tunable.id}: mount with the option nconnect={setting.value} instead (nfs(5))")
            continue
        if isinstance(setting.tunable.computed, Sysctl):
            sysctls += _sysctl_lines(setting)
            continue
        if setting.tunable.computed is not None:
            problem = _add_to_maps(tree, maps, setting)
            left_out += [problem] if problem else []
            continue
        match setting.target.subject:
            case TunedKind.DISK | TunedKind.SUBSYSTEM | TunedKind.CONTROLLER | TunedKind.REMOTE_PORT:
                by_udev.append(setting)
            case TunedKind.HOST:
                options.append(_option(setting))
            case _:
                problem = _add_to_drop_in(drop_ins, setting)
                left_out += [problem] if problem else []
    rules, not_by_udev = udev_rules(tree, by_udev, by_model=by_model)
    left_out += not_by_udev
    files = [
        *_rule_file(rules),
        *_drop_in_files(drop_ins),
        *_option_file(options),
        *_sysctl_file(sysctls),
        *_multipath_file(maps),
    ]
    return Configuration(tuple(files), tuple(dict.fromkeys(left_out)))


def _rule_file(lines: Sequence[str]) -> list[ConfigurationFile]:
    if not lines:
        return []
    text = "\n".join(["# Values of tunables, by lunscope tune save.", *lines, ""])
    return [ConfigurationFile(UDEV_FILE, f"/etc/udev/rules.d/{UDEV_FILE}", text)]


def _option(setting: SavedSetting) -> str:
    module, _, parameter = setting.tunable.file.removeprefix("module/").partition("/parameters/")
    return f"options {module} {parameter}={setting.value}"


def _option_file(lines: Sequence[str]) -> list[ConfigurationFile]:
    if not lines:
        return []
    text = "\n".join(["# Values of tunables, by lunscope tune save.", *lines, ""])
    return [ConfigurationFile(MODULE_FILE, "/etc/modprobe.d/lunscope-tune.conf", text)]


def _sysctl_lines(setting: SavedSetting) -> list[str]:
    """Write the value; one that is 0 because another is used instead is that other one's to say."""
    assert isinstance(setting.tunable.computed, Sysctl)
    if setting.tunable.computed.instead and setting.value == "0":
        return []
    return [f"{setting.tunable.id} = {setting.value}"]


def _sysctl_file(lines: Sequence[str]) -> list[ConfigurationFile]:
    if not lines:
        return []
    text = "\n".join(["# Values of tunables, by lunscope tune save.", *lines, ""])
    return [ConfigurationFile(SYSCTL_FILE, "/etc/sysctl.d/60-lunscope-tune.conf", text)]


def _add_to_maps(tree: KernelTree, maps: dict[str, str], setting: SavedSetting) -> str:
    """Add a path selector to those of multipath.conf, by wwid; returns why it is not."""
    name, tunable = safe_text(setting.target.name), setting.tunable
    if tunable.id == "cache_type":
        return f"{name} {tunable.id}: not saved: a disk that can keeps its mode page itself"
    if tunable.id != "path_selector":
        return f"{name} {tunable.id}: not saved; at boot: {_cache_command(tree, setting)}"
    uuid = tree.read(f"{setting.target.folder}/dm/uuid") or ""
    wwid = uuid.removeprefix("mpath-")
    if wwid == uuid or not plain_text(wwid):
        return f"{name}: no map of multipathd: not saved"
    if "{" in setting.value:
        return f"{name}: its path groups differ, which multipath.conf cannot say: not saved"
    maps[wwid] = setting.value
    return ""


def _cache_command(tree: KernelTree, setting: SavedSetting) -> str:
    """Return the command that sets an argument of dm-cache: LVM keeps it by itself."""
    folder, key = setting.target.folder, setting.tunable.file.removeprefix("dm/")
    map_name = safe_text(tree.read(f"{folder}/dm/name") or setting.target.name)
    if (tree.read(f"{folder}/dm/uuid") or "").startswith("LVM-"):
        return f"lvchange --cachesettings {key}={setting.value} of {map_name}"
    return f"dmsetup message {map_name} 0 {key} {setting.value}"


def _multipath_file(maps: dict[str, str]) -> list[ConfigurationFile]:
    if not maps:
        return []
    sections = (
        f'    multipath {{\n        wwid "{wwid}"\n        path_selector "{value}"\n    }}'
        for wwid, value in maps.items()
    )
    text = "\n".join(["# Values of tunables, by lunscope tune save.", "multipaths {", *sections, "}", ""])
    return [ConfigurationFile(MULTIPATH_FILE, "/etc/multipath/conf.d/lunscope-tune.conf", text)]


def _add_to_drop_in(drop_ins: dict[str, list[str]], setting: SavedSetting) -> str:
    """Add a limit to the drop-in of its unit; returns why it has none."""
    if setting.value in {NO_LIMIT, "default"}:
        return ""
    path = setting.target.folder if setting.target.device else setting.target.name
    unit = path.rpartition("/")[2]
    if not _UNIT.fullmatch(unit):
        return f"{safe_text(setting.target.name)}: no service, slice, mount, socket or swap of systemd: not saved"
    device = f"/dev/{setting.target.holder.replace('!', '/')} " if setting.target.device else ""
    unit_of_time = "us" if setting.tunable.id == "io.latency" else ""
    line = f"{_SETTING[setting.tunable.id]}={device}{setting.value}{unit_of_time}"
    drop_ins.setdefault(unit, []).append(line)
    return ""


def _drop_in_files(drop_ins: dict[str, list[str]]) -> list[ConfigurationFile]:
    return [
        ConfigurationFile(
            f"{unit}.d/{_DROP_IN}",
            f"/etc/systemd/system/{unit}.d/{_DROP_IN}",
            "\n".join(
                [
                    "# Values of tunables, by lunscope tune save.",
                    f"[{_SECTION[unit.rpartition('.')[2]]}]",
                    *dict.fromkeys(lines),
                    "",
                ]
            ),
        )
        for unit, lines in drop_ins.items()
    ]


def write_files(folder: Path, files: Sequence[ConfigurationFile]) -> list[Path]:
    """Write new files below an existing folder; nothing is replaced.

    Raises:
        LunscopeError: the folder is not there, or one of the files is; then none is written.
    """
    paths = [folder / file.name for file in files]
    present = [path for path in paths if os.path.lexists(path)]
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder: make it first")
    if present:
        raise UsageError(f"{present[0]}: it is there already: nothing is replaced; remove it, or name another folder")
    for path, file in zip(paths, files, strict=True):
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("x") as out:
                out.write(file.text)
        except OSError as error:
            raise LunscopeError(f"{path}: {words_of(error)}") from None
    return paths
