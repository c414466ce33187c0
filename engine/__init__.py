"""The load engine and the native core; imports neither collectors nor tui."""

from __future__ import annotations

try:
    from engine import _native as _native
except ImportError as missing:
    from pathlib import Path

    raise ImportError(
        f"lunscope: the native core is not built in {Path(__file__).parent} ({missing}): "
        "run 'make build' in the checkout, or run the installed 'lunscope' from another folder"
    ) from missing
