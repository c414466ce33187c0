"""The process that others wait for, and its end where the kernel does not give a thread back.

A thread in an uninterruptible wait (state D in ps(1)), as a read of a stalled device is, keeps its process from being
reaped whatever exit it calls: wait(2) of its parent returns only once the device answers. So the process that a shell
started does no I/O: it starts a child that does, waits for it, and leaves with the child's exit code, at the latest
when the child says that it ends and the kernel does not let it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import NoReturn

import click

from tui.headless.signals import IMPATIENT

_LEAVES = signal.SIGUSR1
"""From the child: its exit code is in the pipe."""
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_AWAITED = _FORWARDED | {signal.SIGCHLD, _LEAVES}
OWN_PROCESS = object()
"""The object of the click context where the command line is that of this process, and not of a caller within it."""
_REAP_S = 1.0
"""How long the kernel has to end a child that has left."""
_END_S = 3.0
"""How long a child that was sent so many signals has to end."""
_SETTLE_S = 0.05
"""Within this time a signal to the process group has reached all of it."""

_exit_code_fd: int | None = None
"""Where this process says that it leaves, if it is such a child."""


def go_on_in_child() -> None:
    """Have whoever called wait for a process that does no I/O, where the command line is that of this process."""
    if click.get_current_context().find_root().obj is OWN_PROCESS:
        start_child()


def start_child() -> None:
    """Go on in a child process; the calling one waits for it, leaves with its exit code and never returns.

    To be called before there are threads, and with nothing unwritten in buffers.
    """
    from engine.syscalls import die_with_parent  # noqa: PLC0415 (the command line needs it for loads only)

    global _exit_code_fd  # noqa: PLW0603 (one per process)
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:
        # No process is left for this user: the load runs in this one, and may hold it up.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(read_fd)
        os.close(write_fd)
        return
    if child:
        os.close(write_fd)
        _leave_with(_exit_code_of(child, read_fd))
    os.close(read_fd)
    _exit_code_fd = write_fd
    die_with_parent(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave(exit_code: int) -> NoReturn:
    """End this process at once, without waiting for threads that hang; everything must be closed and written.

    The interpreter's own exit would join the threads of executors, and the kernel keeps the process until every thread
    has returned: the parent is told to wait no longer. Descriptors stay open as long as a thread uses them, so that
    whoever reads from a pipe would not see its end: those of the caller are closed here.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for number in (0, 1, 2):
        with suppress(OSError):
            os.close(number)
    end_process(exit_code)


def end_process(exit_code: int) -> NoReturn:
    """End this process where it is, with nothing written any more; who waits for it does so no longer."""
    if _exit_code_fd is not None:
        os.write(_exit_code_fd, bytes([exit_code]))
        os.kill(os.getppid(), _LEAVES)
    os._exit(exit_code)


def _exit_code_of(child: int, read_fd: int) -> int:
    """Wait for a child, and hand on to it what is sent to this process alone; -n if signal n ended it."""
    ending = 0
    while True:
        news = signal.sigwaitinfo(_AWAITED)
        if news.si_signo in _FORWARDED:
            ending += 1
            # What the terminal sends (SI_KERNEL, above 0) reaches all of the foreground group, the child included.
            if news.si_code <= 0 and signal.getsignal(news.si_signo) is not signal.SIG_IGN:
                os.kill(child, news.si_signo)
        code = _code_after(news, child, read_fd)
        if code is None and ending >= IMPATIENT:
            # The child has killed itself by now, or cannot.
            late = signal.sigtimedwait({signal.SIGCHLD, _LEAVES}, _END_S)
            code = None if late is None else _code_after(late, child, read_fd)
            return -news.si_signo if code is None else code
        if code is not None:
            return code


def _code_after(news: signal.struct_siginfo, child: int, read_fd: int) -> int | None:
    """Return the exit code of a child that ended or leaves, None while it goes on."""
    if news.si_signo == signal.SIGCHLD:
        return _status_of(child)
    if news.si_signo != _LEAVES or news.si_pid != child:
        return None
    code = os.read(read_fd, 1)[0]
    signal.sigtimedwait({signal.SIGCHLD}, _REAP_S)
    return code


def _status_of(child: int) -> int | None:
    """Return the exit code of a child as os.waitstatus_to_exitcode, None while it lives; stop where it was stopped."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        return os.waitstatus_to_exitcode(status)
    if _is_stopped(child):
        # Continued together, both are told at once: the child may be behind.
        time.sleep(_SETTLE_S)
        if _is_stopped(child):
            _stop_with(child)
    return None


def _stop_with(child: int) -> None:
    """Stop, so that the shell sees the job stopped; a child that was not continued with this process is then."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(_SETTLE_S)
    if _is_stopped(child):
        os.kill(child, signal.SIGCONT)


def _is_stopped(child: int) -> bool:
    """Whether a child is stopped; a stop that is over is not reported any more."""
    state = os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return state is not None


def _leave_with(exit_code: int) -> NoReturn:
    """End as the child did: with its exit code, or by the signal that ended it."""
    if exit_code < 0:
        signal.signal(-exit_code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-exit_code})
        os.kill(os.getpid(), -exit_code)
    os._exit(exit_code if exit_code >= 0 else 128 - exit_code)
