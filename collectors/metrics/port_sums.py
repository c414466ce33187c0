"""Counters of HBA ports: the sums of the paths through them, since the process began.

Increases are added, not counters: a path that goes away would make a sum of counters fall, which a server takes for a
restart and counts everything again.
"""

from __future__ import annotations

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, wrap_limit
from collectors.derive.roles import Roles
from collectors.model import Step
from collectors.subject import interval_s

QUANTITIES = ("reads", "writes", "read_sectors", "write_sectors", "read_ms", "write_ms")
"""Columns of the disk table that add up."""


class PortSums:
    """Sums by key of the port."""

    def __init__(self) -> None:
        self._sums: dict[str, Values] = {}

    def add(self, step: Step, roles: Roles) -> None:
        """Add the interval of a step; ports that are gone are forgotten."""
        now = step.current.tables.get("disk")
        increases = np.zeros((len(roles.ports), len(QUANTITIES)))
        if now is not None and step.previous is not None:
            wrap = wrap_limit(step.current.topology.host.long_bits, interval_s(step.previous, step.current))
            before = aligned(step.previous.tables.get("disk"), now)
            wanted = [now.schema.index(name) for name in QUANTITIES]
            columns = [now.schema.columns[at] for at in wanted]
            at = roles.path_at[roles.port_of_row[roles.path_at] >= 0]
            deltas = column_deltas(columns, before[at][:, wanted], now.values[at][:, wanted], wrap=wrap)
            for position, name in enumerate(QUANTITIES):
                np.add.at(increases[:, position], roles.port_of_row[at], np.nan_to_num(deltas[name]))
        nothing = np.zeros(len(QUANTITIES))
        keyed = zip(roles.ports.keys, increases, strict=True)
        self._sums = {key: self._sums.get(key, nothing) + increase for key, increase in keyed}

    def column(self, quantity: str) -> dict[str, float]:
        """One quantity by port."""
        at = QUANTITIES.index(quantity)
        return {key: float(values[at]) for key, values in self._sums.items()}
