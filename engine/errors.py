"""Errors for people: one line with what failed, where, and the fix; errors of single I/Os in words."""

from __future__ import annotations

import errno
import os
import resource


def error_name(code: int) -> str:
    """Name an errno, as in EIO; "short" for 0, a transfer that moved fewer bytes than requested."""
    return "short" if code == 0 else errno.errorcode.get(code, f"errno {code}")


def error_message(code: int) -> str:
    """Say what an errno means."""
    return "fewer bytes were moved than asked for" if code == 0 else os.strerror(code)


def error_words(code: int) -> str:
    """As in "EIO Input/output error"."""
    return f"{error_name(code)}{':' if code == 0 else ''} {error_message(code)}"


def describe_error(code: int, direction: str, offset: int) -> str:
    """As in "EIO Input/output error, read at offset 4096"."""
    return f"{error_words(code)}, {direction} at offset {offset}"


class LunscopeError(Exception):
    """Something failed that a person can read and fix; the command line prints it and exits with `exit_code`.

    1 is for what fails while it works: I/O, a host, a device, no space.
    """

    exit_code = 1


class UsageError(LunscopeError):
    """Invalid input: a knob out of range, a file or device that is missing, unreadable, damaged or of another kind."""

    exit_code = 2


class RefusedError(LunscopeError):
    """The guard refuses a target, which nothing was written to; the text names what was found on it."""

    exit_code = 2


class OtherTargetError(RefusedError):
    """A name leads to something else than when it was allowed to be written."""


class StoppedError(LunscopeError):
    """The operator stopped it before it was done; nothing is wrong."""


_OF_THE_HOST = frozenset(
    (
        *(errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.ETIMEDOUT, errno.EADDRINUSE),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    )
)


def unusable(text: str, error: OSError) -> LunscopeError:
    """Build the error for a file or address that was named and cannot be used.

    Bad input (exit code 2) if another one or other rights are needed, a failure (1) if the host or device is to blame.
    """
    return (LunscopeError if error.errno in _OF_THE_HOST else UsageError)(text)


def words_of(error: Exception) -> str:
    """Take what an error says without the number that OSError puts before it."""
    return getattr(error, "strerror", None) or str(error)


def more_open_files() -> str:
    """Say how many descriptors a process may have, and how to get more."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"the limit is {limit}: raise ulimit -n"


_LIMITS = (
    (resource.RLIMIT_NPROC, "ulimit -u", 1, ""),
    (resource.RLIMIT_AS, "ulimit -v", 1024, " KiB"),
    (resource.RLIMIT_DATA, "ulimit -d", 1024, " KiB"),
)


def shortage(error: BaseException) -> str:
    """Say that threads, processes or memory ran out and which limits there are; empty for any other error."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        what = "no memory is left"
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        what = "no thread can be started"
    elif isinstance(error, BlockingIOError) and error.filename is None:
        what = "no process or thread can be started"
    else:
        return ""
    limits = [
        (name, resource.getrlimit(which)[0] // unit, of)
        for which, name, unit, of in _LIMITS
        if resource.getrlimit(which)[0] != resource.RLIM_INFINITY
    ]
    known = ", ".join(f"{name} is {value}{of}" for name, value, of in limits)
    fix = f"{known}: raise what is too low, or" if known else "raise"
    return f"{what}: {fix} memory.max and pids.max of the control group"


def too_many_open(subject: str) -> LunscopeError:
    """Say that no descriptor is left (EMFILE, ENFILE) and how to get more."""
    return LunscopeError(f"{subject}: too many open files: {more_open_files()}, or use fewer targets")


INSTALL_THERE = "build a wheel with make wheel in its sources and install that"
"""How lunscope comes to a host. No name for a package index: whoever registers it there would run on the host."""


def missing_extra(what: str, package: str, extra: str, instead: str = "") -> LunscopeError:
    """Say that an optional package is missing, what needs it, and how it is installed from the sources of lunscope."""
    other = f", or {instead}" if instead else ""
    return LunscopeError(f"{what} needs {package}: in the sources of lunscope, pip install '.[{extra}]'{other}")
