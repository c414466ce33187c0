"""A host that cannot have exact time: doctor and reports name the reason with its mend, and the next tier serves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import needs

pytestmark = [
    needs.root,
    needs.tracer,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("prlimit")), reason="needs unshare and prlimit"),
]

LUNSCOPE = (sys.executable, "-m", "tui")
FEW_FILES = ("prlimit", "--nofile=24:24", *LUNSCOPE)


def under(hidden: str, content: Path) -> tuple[str, ...]:
    """A lunscope that sees other content in place of a file or folder."""
    return (
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount --bind "$0" "$1"; shift; exec "$@"',
        str(content),
        hidden,
        *LUNSCOPE,
    )


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def run(command: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=60)


def hosts(folder: Path) -> dict[str, tuple[tuple[str, ...], str, str]]:
    """Command, what is found and its mend, by what is missing."""
    (folder / "nothing").mkdir()
    (folder / "security").mkdir()
    written(folder / "security", "lockdown", "none integrity [confidentiality]\n")
    old = written(folder, "osrelease", "5.10.0-32-amd64\n")
    return {
        "types": (under("/sys/kernel/btf", folder / "nothing"), "vmlinux is missing", "CONFIG_DEBUG_INFO_BTF"),
        "age": (under("/proc/sys/kernel/osrelease", old), "5.10.0-32-amd64 is too old", "Linux 5.12 or newer"),
        "lock": (under("/sys/kernel/security", folder / "security"), "locked down", "boot with lockdown=integrity"),
        "files": (FEW_FILES, "Too many open files", "raise ulimit -n"),
    }


@pytest.mark.parametrize("missing", ["types", "age", "lock", "files"])
def test_what_is_missing_is_named_and_the_next_tier_serves(missing: str, tmp_path: Path) -> None:
    command, found, mend = hosts(tmp_path)[missing]
    checks: list[dict[str, Any]] = json.loads(run(command, "doctor", "--json").stdout)["checks"]
    exact = next(check for check in checks if check["id"] == "exact time")
    assert exact["status"] == "missing"
    told = f"{exact['found']}: {exact['mend']}"
    assert found in told
    assert mend in told
    assert "lunscope probe" not in told, "the helper would miss the same"
    insisting = run(command, "report", "--tier", "exact", "0.2", "1")
    assert insisting.returncode == 1
    assert insisting.stderr.startswith("lunscope: tier exact: ")
    assert len(insisting.stderr.splitlines()) == 1
    assert found in insisting.stderr
    report = run(command, "report", "--json", "--all", "0.2", "1")
    assert report.returncode == 0, report.stderr
    document = json.loads(report.stdout.splitlines()[0])
    assert document["tier"] in {"sampled", "kernel"}
    assert not any("exact" in disk["tiers"].values() for disk in document["disks"])
