"""A recording whose every text was chosen by somebody else."""

from __future__ import annotations

from pathlib import Path

from collectors.model import HostFacts, Rows, Tier, Topology
from collectors.session.writer import SessionWriter
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.session_samples import Machine

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</svg></style></title><b>bold</b>",
    "a|b `c` *d* _e_ [f](https://g.example) ![h](i) | @j www.k.example # l &lt; \\",
    "\x1b[31mred\x07 \u202eevil\u200b \udcff\n- list\n\n# heading",
    "]]><!-- --> <!DOCTYPE x> {{7*7}} ${x} $(y)",
    "long" * 80,
)


def hostile_recording(folder: Path) -> Path:
    """Write one whose names, models, notices and events are all of HOSTILE."""
    machine = Machine(disks=len(HOSTILE), active=len(HOSTILE))
    machine.rows = Rows(machine.rows.keys, HOSTILE)
    devices = {
        key: replace(device, name=text, model=text, vendor=text, scheduler=text, friendly_name=text, write_cache=text)
        for (key, device), text in zip(machine.topology.devices.items(), HOSTILE, strict=True)
    }
    host = HostFacts(HOSTILE[0], HOSTILE[1], HOSTILE[2], 4, tier=Tier.SAMPLED, notices=HOSTILE)
    machine.topology = Topology(devices, host, replace(machine.topology.graph, notices=HOSTILE))
    path = folder / "x <b>&'y'.luns"
    with SessionWriter(path) as writer:
        for text in HOSTILE:
            sample = machine.sample()
            event = Event(EventKind.NOTE, text, sample.time_ns, sample.monotonic_ns)
            writer.write(replace(sample, events=(event,)))
    return path
