"""Where the operator's settings are."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT_SCRATCH_BYTES = 256 * 1024 * 1024
"""Default size of a scratch file."""

SCRATCH_ENV = "LUNSCOPE_SCRATCH_DIR"


def config_folder() -> Path:
    """`$XDG_CONFIG_HOME/lunscope`, by default `~/.config/lunscope` (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "lunscope"


def config_file() -> Path:
    """Name the file of the settings; it need not be there."""
    return config_folder() / "config.toml"


def state_folder() -> Path:
    """`$XDG_STATE_HOME/lunscope`, by default `~/.local/state/lunscope` (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.local/state").expanduser()) / "lunscope"


def scratch_folder() -> Path:
    """Return the folder of scratch files: `$LUNSCOPE_SCRATCH_DIR`, else lunscope's folder in the user's cache (XDG).

    Never the temporary folder: that is often memory, which is no storage to measure.
    """
    if chosen := os.environ.get(SCRATCH_ENV):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "lunscope"
