"""A host that cannot have exact time: doctor and reports name the reason with its fix, and the next tier serves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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


def checks(document: str) -> dict[str, dict[str, str]]:
    """Checks of doctor by what they are of."""
    return {check["id"]: check for check in json.loads(document)["checks"]}


@pytest.mark.parametrize("missing", ["types", "lock", "files"])
def test_what_is_missing_is_named_and_the_next_tier_serves(missing: str, tmp_path: Path) -> None:
    command, found, fix = hosts(tmp_path)[missing]
    doctor, insisting, report = run(
        command,
        ("doctor", "--json"),
        ("report", "--tier", "exact", "0.2", "1"),
        ("report", "--json", "--all", "0.2", "1"),
    )
    exact = checks(doctor.out)["exact time"]
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
    by_setting, by_option, missing, endless, in_text = run(
        command,
        verb,
        (*verb, "--btf", other),
        (*verb, "--btf", "/nowhere"),
        (*verb, "--btf", "/dev/zero"),
        ("doctor", "--btf", str(types)),
    )
    found, refused = (checks(done.out)["exact time"]["found"] for done in (by_setting, by_option))
    assert found.startswith("block tracepoints (raw, arguments without types) can be watched")
    assert checks(by_setting.out)["kernel types"]["found"] == f"{types}, named by [exact_time] btf"
    assert other in refused
    assert checks(by_option.out)["kernel types"] == {
        "id": "kernel types",
        "status": "missing",
        "found": f"LUNSCOPE_BTF={other}: no types in BTF",
        "mend": "name a file made by pahole or bpftool",
    }
    assert checks(endless.out)["kernel types"]["found"] == "LUNSCOPE_BTF=/dev/zero: not a regular file"
    assert f"kernel types        {types}, named by --btf\n" in in_text.out
    assert (missing.code, missing.out) == (2, "")
    assert "/nowhere" in missing.err


def test_types_that_are_named_beside_those_of_the_kernel_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNSCOPE_BTF", "/etc/hostname")
    by_variable, by_option = run(LUNSCOPE, ("doctor", "--json"), ("doctor", "--json", "--btf", "/etc/passwd"))
    found = [checks(done.out)["kernel types"]["found"] for done in (by_variable, by_option)]
    assert found == [
        f"{TYPES}, the kernel's own; {file}, named by {by}, is not needed"
        for file, by in (("/etc/hostname", "LUNSCOPE_BTF"), ("/etc/passwd", "--btf"))
    ]
