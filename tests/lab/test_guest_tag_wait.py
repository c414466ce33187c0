"""Waits for tags by the tracepoint of Linux 7.2, which a module brings to the guest's kernel."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

_MODULE = Path(__file__).parent / "tag_wait_event"
_SCRIPT = """
device=/sys/kernel/config/nullb/nullb9
mkdir $device
for setting in queue_mode=2 irqmode=2 completion_nsec=20000000 hw_queue_depth=4 submit_queues=1 size=1024; do
    echo ${setting#*=} > $device/${setting%%=*}
done
echo 1 > $device/power
udevadm settle
python3 -m tests.lab.measure_tag_wait /module/tag_wait.ko
python3 -m tui record -o /tmp/a.luns --duration 40s >&2 & recording=$!
until [ -s /tmp/a.luns ]; do sleep 0.2; done
sleep 5
python3 -c 'from tests.lab.measure_tag_wait import load; load(1); load(1); load(16); load(16)'
wait $recording
python3 -m tui report --json --from /tmp/a.luns
"""


def _headers(folder: Path) -> Path:
    """Unpack the headers of the guest's kernel, without installing them; skips where Debian has them no more."""
    lab = Path(os.environ.get("LAB_DIR") or Path.home() / ".cache/storage-lab")
    image = (lab / "stable.vmlinuz").read_bytes()
    # Documentation/arch/x86/boot.rst: kernel_version, relative to the second sector.
    version_at = int.from_bytes(image[0x20E:0x210], "little") + 0x200
    release = image[version_at : version_at + 64].split(b" ")[0].decode()
    common = re.sub(r"-[a-z0-9]+$", "-common", release)
    kbuild = "linux-kbuild-" + ".".join(release.split(".")[:2])
    packages = (f"linux-headers-{release}", f"linux-headers-{common}", kbuild)
    done = subprocess.run(
        ["apt-get", "download", *packages], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip(f"no headers of the guest's kernel {release}: {done.stderr.strip()[-200:]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    headers = folder / "root/usr/src" / packages[0]
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src", str(folder / "root/usr/src")))
    return headers


@functools.cache
def printed() -> list[dict[str, Any]]:
    """What the guest printed, in lines of JSON; the module is built for its kernel first."""
    for tool in ("apt-get", "dpkg-deb", "gcc-12", "make"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed: the module of this test cannot be built")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        headers = _headers(folder)
        module = shutil.copytree(_MODULE, folder / "module")
        subprocess.run(["make", "-C", headers, f"M={module}", "modules"], check=True, capture_output=True)
        lines = run_in_guest("null-blk", _SCRIPT, "--ro", f"/module={module}").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def grown(until: str, since: str) -> tuple[dict[str, int], dict[str, int]]:
    """What the pair and the event counted in between."""
    found = printed()[0]
    pair, event = (
        {name: after[name] - before[name] for name in after}
        for before, after in zip(found[since], found[until], strict=True)
    )
    return pair, event


def test_sleeps_for_a_tag_are_counted_and_only_they() -> None:
    assert printed()[0]["tags"] == 4
    assert grown("alone", "before")[1] == {"reads": grown("alone", "before")[0]["reads"], **_NOTHING}
    unwatched = grown("not_watched", "alone")[1]
    assert unwatched["tag_sleeps"] > 0
    assert unwatched["tag_waits"] == unwatched["tag_wait_ns"] == 0


_NOTHING = {"tag_waits": 0, "tag_wait_ns": 0, "tag_sleeps": 0}


def test_the_event_times_the_same_waits_as_the_pair() -> None:
    pair, event = grown("watched", "not_watched")
    assert pair["tag_waits"] == pytest.approx(pair["reads"], abs=16)
    assert 0 < event["tag_waits"] <= event["tag_sleeps"]
    assert event["tag_waits"] < pair["tag_waits"]
    assert event["tag_wait_ns"] == pytest.approx(pair["tag_wait_ns"], rel=0.02)
    pair, event = grown("alone_again", "watched")
    assert pair["tag_waits"] > 0
    assert event["tag_waits"] == event["tag_wait_ns"] == 0


def test_a_recording_knows_that_nobody_waits_and_how_long_many_do() -> None:
    rows = [row for one in printed()[1:] for row in one["disks"] if row["name"] == "nullb9" and row["iops"]]
    waits = [row["tag_wait_ms"] for row in rows]
    known = [wait for wait in waits if wait is not None]
    assert known[0] == 0
    assert max(known) > 20
