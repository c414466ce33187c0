"""A guest that did not boot is booted once more; a script that failed is not run again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.lab.guest import BOOTS, run_in_guest, run_one_by_one

PANIC = "echo 'Kernel panic - not syncing: IO-APIC + timer does not work' >&2; exit 125\n"


@pytest.fixture
def boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab whose guests panic as often as a file says before they boot; it writes a line for each boot."""
    lab = tmp_path / "lab"
    lab.write_text(
        "#!/bin/bash\n"
        f"echo boot >> {tmp_path}/boots\n"
        f"[ $(wc -l < {tmp_path}/boots) -gt $(cat {tmp_path}/panics) ] || {{ {PANIC} }}\n"
        'bash -c "${@: -1}"\n'
    )
    lab.chmod(lab.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("LUNSCOPE_LAB", str(tmp_path))
    return tmp_path


def run(boots: Path, panics: int, script: str) -> str:
    (boots / "panics").write_text(str(panics))
    return run_in_guest("none", f"true; {script}")


def booted(boots: Path) -> int:
    return len((boots / "boots").read_text().splitlines())


def test_a_boot_that_panicked_is_tried_again(boots: Path) -> None:
    with pytest.warns(UserWarning, match="guest none did not boot: Kernel panic"):
        assert run(boots, 1, "echo fine") == "fine\n"
    assert booted(boots) == 2


def test_a_guest_that_never_boots_fails(boots: Path) -> None:
    with pytest.warns(UserWarning, match="did not boot"), pytest.raises(AssertionError, match="Kernel panic"):
        run(boots, BOOTS, "echo fine")
    assert booted(boots) == BOOTS


@pytest.mark.parametrize("ends", ["exit 1", "exit 124", PANIC])
def test_a_script_that_failed_is_not_run_again(boots: Path, ends: str) -> None:
    """Even by a panic of the guest's kernel, once the script has begun."""
    with pytest.raises(AssertionError):
        run(boots, 0, ends)
    assert booted(boots) == 1


def test_scripts_that_share_a_guest_end_each_by_itself(boots: Path) -> None:
    (boots / "panics").write_text("0")
    scripts = ["echo fine", "echo odd; exit 3", "echo cut; kill -9 $$", "echo never"]
    ended = run_one_by_one("none", scripts)
    assert [(ended[script].status, ended[script].printed) for script in scripts[:2]] == [(0, "fine\n"), (3, "odd\n")]
    assert all(ended[script].status for script in scripts[2:])
    assert ended[scripts[2]].printed == "cut\n"
    assert booted(boots) == 1
