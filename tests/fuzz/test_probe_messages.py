"""A short run of random messages to the probe helper; `make fuzz` runs it for longer."""

from __future__ import annotations

import random

from tests.fuzz import probe_messages


def test_random_messages_are_answered_or_end_their_connection() -> None:
    assert probe_messages.run(random.randrange(1 << 32), count=1_000, seconds=10.0) > 100
