"""Starts lunscope over a tree on tmpfs as over a kernel's sysfs: `python -m bench.as_sysfs VERB ...`.

On sysfs the descriptors of states stay open, and names are listed after uevents only. In any other tree files may be
replaced, so that they are opened at each read and listed each second, which costs several times as much.
"""

from __future__ import annotations

import functools
from unittest.mock import patch

from collectors.kernel import hotplug
from collectors.topology import inventory
from collectors.topology.state_poll import StatePoll
from tui.main import main

if __name__ == "__main__":
    kept_open = functools.partial(StatePoll, keep=True)
    with patch.object(inventory, "StatePoll", kept_open), patch.object(hotplug, "is_sysfs", lambda _folder: True):
        main()
