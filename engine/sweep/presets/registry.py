"""All presets; a new one is its file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.errors import UsageError
from engine.sweep.presets.directio import DIRECTIO
from engine.sweep.presets.dump import DUMP
from engine.sweep.presets.factors import FACTORS
from engine.sweep.presets.flashcache import FLASHCACHE
from engine.sweep.presets.fourcorners import FOURCORNERS, fourcorners_over
from engine.sweep.presets.multipath import MULTIPATH
from engine.sweep.presets.preset import Preset
from engine.sweep.presets.skytap import SKYTAP
from engine.text import safe_text

PRESETS = {preset.name: preset for preset in (SKYTAP, FLASHCACHE, FOURCORNERS, MULTIPATH, DIRECTIO, DUMP, FACTORS)}

FLEET_PRESETS: Mapping[str, Callable[[int], Preset]] = {FOURCORNERS.name: fourcorners_over}
"""Studies over several hosts, by name, made for a number of them."""


def preset_named(name: str) -> Preset:
    """Find a preset.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in PRESETS:
        raise UsageError(f"--preset {safe_text(name)}: no such preset: one of {', '.join(PRESETS)}, or list")
    return PRESETS[name]


def fleet_preset(name: str, hosts: int) -> Preset:
    """Find a preset over a number of hosts.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in FLEET_PRESETS:
        raise UsageError(f"--preset {safe_text(name)}: no preset over hosts: there is {', '.join(FLEET_PRESETS)}")
    return FLEET_PRESETS[name](hosts)
