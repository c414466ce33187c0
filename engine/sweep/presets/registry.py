"""All presets; a new one is its file and a line here."""

from __future__ import annotations

from engine.errors import UsageError
from engine.sweep.presets.directio import DIRECTIO
from engine.sweep.presets.dump import DUMP
from engine.sweep.presets.flashcache import FLASHCACHE
from engine.sweep.presets.fourcorners import FOURCORNERS
from engine.sweep.presets.multipath import MULTIPATH
from engine.sweep.presets.preset import Preset
from engine.sweep.presets.skytap import SKYTAP
from engine.text import safe_text

PRESETS = {preset.name: preset for preset in (SKYTAP, FLASHCACHE, FOURCORNERS, MULTIPATH, DIRECTIO, DUMP)}


def preset_named(name: str) -> Preset:
    """Find a preset.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in PRESETS:
        raise UsageError(f"--preset {safe_text(name)}: no such preset: one of {', '.join(PRESETS)}, or list")
    return PRESETS[name]
