"""The guard: opens the targets of a load, and makes sure that no data in use is ever overwritten.

Reading is the default and is allowed on anything that stores. What may be written, and what never, is in
engine/guard/permission.py; what counts as in use, in engine/guard/usage.py.
"""

from __future__ import annotations

from engine.guard.monitor import UseMonitor as UseMonitor
from engine.guard.opening import open_targets as open_targets
from engine.guard.scratch import fill_scratch as fill_scratch
from engine.guard.shared import SharedTargets as SharedTargets
from engine.guard.shared import refuse_conflicts as refuse_conflicts
from engine.guard.target import OpenTarget as OpenTarget
from engine.guard.target import TargetKind as TargetKind
from engine.guard.target import recheck_targets as recheck_targets
