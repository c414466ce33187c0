"""Optional packages: what to do where one is missing."""

from __future__ import annotations

from engine.errors import LunscopeError

INSTALL_THERE = "build a wheel with make wheel in its sources and install that"
"""How lunscope comes to a host. No name for a package index: whoever registers it there would run on the host."""


def missing_extra(what: str, package: str, extra: str, instead: str = "") -> LunscopeError:
    """Say that an optional package is missing, what needs it, and how it is installed from the sources of lunscope."""
    other = f", or {instead}" if instead else ""
    return LunscopeError(f"{what} needs {package}: in the sources of lunscope, pip install '.[{extra}]'{other}")
