"""Too little memory for exact time: the reason is named, nobody is killed, and the next tier serves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests import needs
from tests.kernel.memory_group import memory_group
from tests.kernel.tracing import sysfs_without

pytestmark = [needs.tracer, needs.memory_group]

DISKS = 19_200
"""Their maps take some 40 MB."""
LIMIT_BYTES = 40 << 20
"""Limit in which they fit, as a process counts what it takes after it has joined the group only."""

DOCTOR = """
import json, os, sys
from pathlib import Path
from collectors.doctor import exact_time
from collectors.exact.tracer_supervisor import TracerSupervisor, open_tracer
from engine import _native
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
check = exact_time(Path("/proc"), Path(sys.argv[2]))
supervisor = TracerSupervisor(lambda: open_tracer("/proc", sys.argv[2]))
supervisor.start()
waited = supervisor.wait(30)
supervisor.close()
try:
    _native.BlockTracer(sys.argv[2])
    refused = ""
except OSError as error:
    refused = error.strerror
events = [event.text for event in supervisor.take_events()]
print(json.dumps([check.status, check.found, check.fix, waited, events, refused]))
"""


def test_what_the_control_group_has_no_room_for_is_refused_with_the_reason(tmp_path: Path) -> None:
    """The kernel refuses maps, but kills a process rather than refuse programs: these are not begun then."""
    sysfs = Path(sysfs_without(tmp_path / "sys", "block"))
    (sysfs / "block").mkdir()
    for number in range(DISKS):
        (sysfs / f"block/sd{number}").touch()
    with memory_group(LIMIT_BYTES) as group:
        command = [sys.executable, "-c", DOCTOR, str(group), str(sysfs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, found, fix, waited, events, refused = json.loads(done.stdout)
    assert (status, waited) == ("missing", False)
    assert found.startswith("a limit of the control group leaves less than the ")
    assert fix.startswith("raise ")
    assert "/memory." in fix
    assert events == [f"no exact time: {found}: {fix}"]
    assert refused.startswith("creating the maps: ")
    assert refused.endswith(": free memory, or raise the limit of the control group (memory.max)")
