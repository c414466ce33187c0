"""All tunables, in the order in which they are listed."""

from __future__ import annotations

from engine.errors import UsageError
from engine.text import safe_text, short_text
from engine.tune.arrays import ARRAYS
from engine.tune.block import QUEUE, SCHEDULERS
from engine.tune.groups_caches import CACHES, GROUPS
from engine.tune.maps import MAPS
from engine.tune.nfs import NFS
from engine.tune.path_state import PATH_STATES
from engine.tune.scsi_nvme import NVME, REMOTE_PORTS, SCSI
from engine.tune.tunable import Tunable
from engine.tune.write_back import WRITE_BACK

TUNABLES: tuple[Tunable, ...] = (
    *QUEUE,
    *SCHEDULERS,
    *ARRAYS,
    *SCSI,
    *NVME,
    *GROUPS,
    *CACHES,
    *REMOTE_PORTS,
    *MAPS,
    *NFS,
    *WRITE_BACK,
)
BY_ID = {tunable.id: tunable for tunable in (*TUNABLES, *PATH_STATES)}
"""Those that records may name: drills set states of paths, which nobody sets without a look at the other paths."""
_NAMED = {tunable.id: tunable for tunable in TUNABLES}


def find_tunable(name: str) -> Tunable:
    """Find a tunable by its id.

    Raises:
        UsageError: there is none; those with a similar id are named.
    """
    if name in _NAMED:
        return _NAMED[name]
    shown = safe_text(short_text(name, 80))
    alike = [known for known in _NAMED if name and (name in known or known in name)][:4]
    hint = f"is it {' or '.join(alike)}?" if alike else "`lunscope tune list --names` lists them"
    raise UsageError(f"'{shown}' is no tunable: {hint}")
