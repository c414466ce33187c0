"""A host that cannot have exact time: doctor and reports name the reason with its fix, and the next tier serves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import needs
from tests.kernel.tracing import TYPES

pytestmark = [
    needs.root,
    needs.tracer,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("prlimit")), reason="needs unshare and prlimit"),
]

EACH_FORKED = """
import json, os, sys
import collectors.sources.live, tui.commands.doctor, tui.commands.report
from tui.cli import run_cli
ended = []
for words in json.loads(sys.argv[1]):
    (out, their_out), (err, their_err) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(their_out, 1), os.dup2(their_err, 2)
        for end in (out, their_out, err, their_err):
            os.close(end)
        sys.exit(run_cli(words))
    os.close(their_out), os.close(their_err)
    printed = [open(end).read() for end in (out, err)]
    ended.append([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *printed])
print(json.dumps(ended))
"""
"""Lunscope once for each list of words: to load it takes longer than what it does."""
LUNSCOPE = (sys.executable, "-c", EACH_FORKED)
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


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def run(command: tuple[str, ...], *verbs: tuple[str, ...]) -> list[Ended]:
    done = subprocess.run([*command, json.dumps(verbs)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [Ended(*one) for one in json.loads(done.stdout)]


def hosts(folder: Path) -> dict[str, tuple[tuple[str, ...], str, str]]:
    """Command, what is found and its fix, by what is missing."""
    (folder / "nothing").mkdir()
    (folder / "security").mkdir()
    written(folder / "security", "lockdown", "none integrity [confidentiality]\n")
    return {
        "types": (under("/sys/kernel/btf", folder / "nothing"), "vmlinux is missing", "CONFIG_DEBUG_INFO_BTF"),
        "lock": (under("/sys/kernel/security", folder / "security"), "locked down", "boot with lockdown=integrity"),
        "files": (FEW_FILES, "Too many open files", "raise ulimit -n"),
    }


@pytest.mark.parametrize("missing", ["types", "lock", "files"])
def test_what_is_missing_is_named_and_the_next_tier_serves(missing: str, tmp_path: Path) -> None:
    command, found, fix = hosts(tmp_path)[missing]
    doctor, insisting, report = run(
        command,
        ("doctor", "--json"),
        ("report", "--tier", "exact", "0.2", "1"),
        ("report", "--json", "--all", "0.2", "1"),
    )
    checks: list[dict[str, Any]] = json.loads(doctor.out)["checks"]
    exact = next(check for check in checks if check["id"] == "exact time")
    assert exact["status"] == "missing"
    sentence = f"{exact['found']}: {exact['mend']}"
    assert found in sentence
    assert fix in sentence
    assert "lunscope probe" not in sentence, "the helper would miss the same"
    assert insisting.code == 1
    # On a busy host it says after 2 s that it waits.
    *waits, refusal = insisting.err.splitlines()
    assert all("takes longer than" in line for line in waits)
    assert refusal.startswith("lunscope: tier exact: ")
    assert found in refusal
    assert report.code == 0, report.err
    document = json.loads(report.out.splitlines()[0])
    assert document["tier"] in {"sampled", "kernel"}
    assert not any("exact" in disk["tiers"].values() for disk in document["disks"])


def test_types_that_the_kernel_lacks_are_named_by_setting_or_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = shutil.copy(TYPES, tmp_path / "types.btf")
    (tmp_path / "lunscope").mkdir()
    written(tmp_path / "lunscope", "config.toml", f'[exact_time]\nbtf = "{types}"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nothing").mkdir()
    command = under("/sys/kernel/btf", tmp_path / "nothing")
    other = str(written(tmp_path, "other.btf", "no types"))
    verb = ("doctor", "--json")
    by_setting, by_option, missing = run(command, verb, (*verb, "--btf", other), (*verb, "--btf", "/nowhere"))
    checks = [json.loads(done.out)["checks"] for done in (by_setting, by_option)]
    found, refused = (next(one["found"] for one in all_ if one["id"] == "exact time") for all_ in checks)
    assert found.startswith("block tracepoints (raw, arguments without types) can be watched")
    assert other in refused
    assert (missing.code, missing.out) == (2, "")
    assert "/nowhere" in missing.err
