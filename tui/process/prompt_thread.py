"""Priority for threads that answer the operator: screens respond while a load or the host uses all processors."""

from __future__ import annotations

import os
from contextlib import suppress

NICE = -15
"""Weight of 28 ordinary threads (sched_prio_to_weight in kernel/sched/core.c); screens use a few percent of a core."""


def respond_promptly() -> None:
    """Raise the priority of the calling thread where the kernel lets this user.

    Threads and processes that it starts get the ordinary priority again (SCHED_RESET_ON_FORK, sched(7)): a load, and
    commands of the operator, compete with others as if there were no screens. A priority or policy that whoever
    started lunscope chose is left as it is.
    """
    ordinary = os.sched_getscheduler(0) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, 0) == 0
    if not ordinary:
        return
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        # Of this thread alone: Linux takes 0 for the calling thread (setpriority(2), C library/kernel differences).
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
