"""The knee of a device whose curve is known in closed form, through a real kernel: null_blk with a timer.

With irqmode=2 each request is completed completion_nsec = S after it was issued, and hw_queue_depth = D requests can be
issued at a time (Documentation/block/null_blk.rst): X(N) = min(N, D) / S and R(N) = max(S, N S / D).
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]

SERVICE_S, DEPTH = 0.005, 8
"""Slow enough that emulated processors are not the limit: D / S is 1,600 IOPS."""
LATE = 0.30
"""By how much emulated processors of a busy host may fall short of the closed form in the best of several trials. They
make I/Os late, never early: on the other side 2 % are for the clocks."""
DEVICE = f"""
device=/sys/kernel/config/nullb/knee; mkdir $device
timer="queue_mode=2 irqmode=2 completion_nsec={SERVICE_S * 1e9:.0f} hw_queue_depth={DEPTH} submit_queues=1"
for pair in $timer size=1024; do echo ${{pair#*=}} > $device/${{pair%%=*}}; done
echo 1 > $device/power; udevadm settle
"""
EMULATED = "export NPY_DISABLE_CPU_FEATURES='X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2'\n"
"""Sorting with AVX2 (numpy.argsort of a fit) now and then ends in SIGSEGV on the processors that QEMU emulates."""
SWEEP = "python3 -m tui sweep --vary qd=1..64 --target /dev/knee --json"
SEARCH = "python3 -m tui sweep --target /dev/knee --json"


def _documents(script: str) -> list[dict[str, Any]]:
    lines = run_in_guest("null-blk", EMULATED + DEVICE + script).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_sweep_finds_the_closed_form_knee() -> None:
    (document,) = _documents(SWEEP)
    (curve,) = document["curves"]
    answer = curve["answer"]
    # Interrupts of a deep queue cost emulated processors a few percent, which is a low peak.
    assert answer["shape"] in ("knee", "peak")
    assert abs(math.log2(answer["best_balance"]["load"] / DEPTH)) <= 1
    assert abs(math.log2(answer["highest_throughput"]["load"] / DEPTH)) <= 1
    points: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for trial in curve["trials"]:
        assert trial["errors"] == 0
        points[trial["load"]].append(trial)
    assert set(points) >= {1, 2, 4, 8, 16, 32, 64}
    for load, trials in points.items():
        best = max(trials, key=lambda trial: float(trial["iops"]))
        latency_s = best["latency_us"]["mean"] / 1e6
        throughput, response_s = min(load, DEPTH) / SERVICE_S, max(SERVICE_S, load * SERVICE_S / DEPTH)
        assert (1 - LATE) * throughput <= best["iops"] <= 1.02 * throughput, load
        assert 0.98 * response_s <= latency_s <= response_s / (1 - LATE), load
        assert best["in_flight"] == pytest.approx(best["iops"] * latency_s, rel=0.1), "Little's law"


def test_searched_rates_are_below_the_closed_form_maximum() -> None:
    """Medians, as emulated processors of a busy host hold up some I/Os for tens of milliseconds."""
    (document,) = _documents(f"{SEARCH} --slo 'p50<=8ms' --slo 'p50<=20ms'")
    (search,) = document["open_loop"]["searches"]
    assert document["complete"]
    assert search["maximum_iops"] <= 1.02 * DEPTH / SERVICE_S
    tight, loose = (limit["lower"] for limit in search["limits"])
    assert 0 < tight["rate"] <= loose["rate"] <= search["maximum_iops"] * 1.02
