"""The load engine and the native core; imports neither collectors nor tui."""

from __future__ import annotations

try:
    import engine._native  # noqa: F401 (imported here so that its absence gives one clear error)
except ImportError as missing:
    from pathlib import Path

    raise ImportError(
        f"lunscope: the native core is not built in {Path(__file__).parent} ({missing}): "
        "run 'make build' in the checkout, or run the installed 'lunscope' from another folder"
    ) from missing
