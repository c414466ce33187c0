"""`make bench`: every measurement of this folder in turn, each figure with its goal.

`python -m bench engine session` runs some of them; `--quick` runs fewer pairs.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

PARTS = {
    "engine": "IOPS and CPU per I/O against fio, by interrupt and polling",
    "ceiling": "no-ops per second and core: the engine without storage, and its memory",
    "cores": "N workers of one process against N processes and fio, by processors, exact time off and on",
    "arrival": "open loops: accuracy of rates, and latencies from the arrival against queueing theory",
    "buffered": "the threads engine against fio psync where reads block",
    "policies": "cost of each path policy per I/O, and 64 targets at their queue depth",
    "sweeps": "sweeps of a steady device: cost of a point, time to the knee, one limit against three",
    "screen_cost": "cost of the screens to a running load, and delay from key to knob",
    "tick": "reading and parsing the counters of 2,000 and 19,200 devices",
    "topology": "scanning 19,200 paths of 600 LUNs, in full and after one change, and cost of path roll-ups",
    "tune": "changing queue_depth of 19,200 paths, restoring it, and rolling back where the last path refuses",
    "cgroups": "reading the counters of 200 control groups with 20 devices each",
    "derive": "deriving frames of 2,000 and 19,200 devices",
    "first_paint": "time to the first painted screen",
    "scale_screen": "CPU and memory of the screens at 1 Hz over 19,200 paths of 600 LUNs",
    "key_delay": "delay from a key to the screen beside a load on all processors, and over 19,800 devices",
    "sent": "bytes to the terminal by screen, CPU per key",
    "exact": "cost of exact time to a running load, and of reading it",
    "paint": "repainting grids, charts and heat maps",
    "metrics": "a scrape of 2,000 devices",
    "report": "an interval of report, and reading a recording in order",
    "fleet": "100 agents over a real sshd: time to connect, CPU of the controller",
    "fleet_turns": "starts and turns of a load over real agents: how far apart the hosts were",
    "session": "bytes per active device and tick, opening and seeking a 24 h recording",
}


def main() -> None:
    """Run the named parts, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer pairs, for a quick check")
    arguments = parser.parse_args()
    # Loop devices and scratch files are removed in `finally`.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    for part in arguments.parts or PARTS:
        print(f"\n== {part}: {PARTS[part]}", flush=True)
        importlib.import_module(f"bench.{part}").main(quick=arguments.quick)


main()
