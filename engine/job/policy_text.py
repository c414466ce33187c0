"""Names of path policies, with those that other systems use for the same rule."""

from __future__ import annotations

from engine.errors import UsageError
from engine.job.choices import PathPolicy

ALIASES = {"queue-length": PathPolicy.LEAST_COMMAND_LOAD}
"""Of dm-multipath."""
POLICY_NAMES = (*PathPolicy, *ALIASES)


def parse_policy(text: str) -> PathPolicy:
    """Read the name of a policy.

    Raises:
        UsageError: none of that name.
    """
    name = text.strip().lower().replace("_", "-")
    if name in ALIASES:
        return ALIASES[name]
    try:
        return PathPolicy(name)
    except ValueError:
        raise UsageError(f"{text!r} is no path policy: known are {', '.join(POLICY_NAMES)}") from None
