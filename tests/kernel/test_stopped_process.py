"""A process that is stopped as a whole: the I/Os that complete meanwhile are in no statistic."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests import needs

pytestmark = [pytest.mark.alone, pytest.mark.waits, pytest.mark.xdist_group("stopped process")]

STOPS, STOP_S = 4, 0.8
SCRIPT = f"""
import json, os, signal, subprocess, sys, threading, time
from engine.job.spec import Backend, JobSpec, Knobs, Permissions
from engine.running.control import LoadControl

control = LoadControl()
knobs = Knobs(queue_depth=64)
control.arm(JobSpec(size_bytes=8 << 20, knobs=knobs, backend=Backend(sys.argv[1])), Permissions())
control.start()
for _ in range({STOPS}):
    time.sleep(0.2)
    waker = subprocess.Popen(["sh", "-c", f"sleep {STOP_S}; kill -CONT {{os.getpid()}}"])
    control.part_epoch()
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    time.sleep(0.01)
    waker.wait()
time.sleep(0.2)
control.stop()
result = control.result()
measured = result.total.total
print(json.dumps({{"slowest_s": measured.largest_ns / 1e9, "ios": measured.ios, "epochs": len(result.epochs)}}))
"""


@pytest.mark.parametrize("backend", [pytest.param("uring", marks=needs.io_uring), "threads"])
def test_no_latency_holds_the_stop(backend: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    measured = json.loads(ran.stdout)
    assert measured["epochs"] == STOPS + 1
    assert measured["ios"] > 0
    assert measured["slowest_s"] < STOP_S / 2
