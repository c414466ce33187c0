"""In a guest with dm-multipath: from the row of a LUN and of a path to what can be driven, and a load on each."""

from __future__ import annotations

import json
import threading
import time

from collectors.model import Topology
from collectors.sources.live import LiveSource
from engine.guard.answers import quick_snapshot, use_words
from engine.job.spec import JobSpec, Permissions
from engine.job.target_text import parse_target
from engine.running.control import LoadControl
from engine.running.status import LoadState
from tui.load.candidates import candidates, load_targets, target_of
from tui.load.load_controller import LoadController

WAIT_S = 60.0


def topology_now() -> Topology:
    """The device graph of the guest, once its maps are in it."""
    source = LiveSource(1.0, tier="kernel")
    try:
        for step in source.steps(threading.Event()):
            if any(lun.multipath == "dm" for lun in step.current.topology.graph.luns):
                return step.current.topology
        raise AssertionError("no maps")
    finally:
        source.close()


def read_from(target: str) -> dict[str, object]:
    """Set up a load as the key does, ask the guard, and run it for a moment."""
    control = LoadControl()
    controller = LoadController(control, JobSpec(), Permissions())
    controller.read_from((parse_target(target),))
    (answer,) = controller.guard.answers(controller.job, controller.permissions)
    controller.start()
    deadline_s = time.monotonic() + WAIT_S
    reading = control.peek()
    while (reading is None or not reading[:, 0].any()) and time.monotonic() < deadline_s:
        time.sleep(0.1)
        reading = control.peek()
    state = control.status.state
    controller.stop()
    return {
        "reading": answer.reading,
        "writing": answer.writing,
        "ran": state is LoadState.RUNNING,
        "ios": reading is not None and bool(reading[:, 0].any()),
        "errors": control.status.errors,
    }


def main() -> None:
    topology = topology_now()
    lun = next(lun for lun in topology.graph.luns if lun.multipath == "dm")
    path = topology.graph.of_lun(lun)[0]
    of_lun = [target_of(one) for one in load_targets(lun.key, topology)]
    of_path = [target_of(one) for one in load_targets(path.key, topology)]
    found = {
        "map": of_lun[0],
        "of_lun": of_lun,
        "of_path": of_path,
        "paths": len(topology.graph.of_lun(lun)),
        "listed": [target_of(one) for one in candidates(topology)],
        "use of path": use_words(quick_snapshot(), path.name),
        "loads": {target: read_from(target) for target in of_path},
    }
    print(json.dumps(found))  # noqa: T201 (the test reads it)


if __name__ == "__main__":
    main()
