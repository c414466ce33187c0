"""Where the operator's settings are."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """`$XDG_CONFIG_HOME/lunscope`, by default `~/.config/lunscope` (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base else Path.home() / ".config") / "lunscope"


def config_file() -> Path:
    """Name the file of the settings; it need not be there."""
    return config_folder() / "config.toml"
