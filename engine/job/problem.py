"""What is wrong with one option."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one option, without the option's name in front."""

    option: str
    """As typed on the command line, without the dashes."""
    text: str

    def __str__(self) -> str:
        return f"--{self.option}: {self.text}"
