"""A parent process without I/O that can always exit, even if a thread of its child is stuck in the kernel.

A process with a thread in an uninterruptible wait (state D in ps(1)), such as a read of a stalled device, cannot be
reaped: wait(2) of its parent returns only once the device responds. So the process started by the shell does no I/O:
it forks a child that does, waits for it, and exits with the child's exit code, at the latest when the child has
reported it but cannot end. If the child is killed, the parent restores the terminal and says so.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

import click
from msgspec import Struct

from tui.headless.signals import IMPATIENT
from tui.process.standard_streams import say
from tui.process.stuck_call import Watch

_LEAVES = signal.SIGUSR1
"""Message of the child: its exit code is in the pipe."""
_FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_AWAITED = _FORWARDED | {signal.SIGCHLD, _LEAVES}
_REAP_S = 1.0
"""How long the kernel has to end a child that has reported its exit code."""
_END_S = 3.0
"""How long a child has to end after the last counted signal."""
_SETTLE_S = 0.05
"""Time in which a signal to the process group has reached all its members."""

_exit_code_fd: int | None = None
"""Pipe for the exit code, if this process is such a child."""


class OwnProcess(Struct, frozen=True, eq=False):
    """Object of the click context if the command line belongs to this process, not to a caller within it."""

    remember_terminal: Callable[[], Callable[[], None]]
    """Called before a child is started; what it returns is called if that is killed."""
    watch: Watch
    """Watch of the main thread; a child has one of its own."""


def go_on_in_child() -> None:
    """Continue in a child process if the command line belongs to this process."""
    own = click.get_current_context().find_root().obj
    if isinstance(own, OwnProcess):
        own.watch.stop()
        _start_child(own.remember_terminal())
        Watch()


def _start_child(restore_terminal: Callable[[], None]) -> None:
    """Continue in a child process; the parent waits for it, exits with its exit code and never returns.

    Call it before threads are started, and with flushed buffers.
    """
    from engine.syscalls import die_with_parent  # noqa: PLC0415 (the command line needs it for loads only)

    global _exit_code_fd  # noqa: PLW0603 (one per process)
    read_fd, write_fd = os.pipe2(os.O_CLOEXEC)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:
        # RLIMIT_NPROC is reached: the load runs in this process, and may block its exit.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(read_fd)
        os.close(write_fd)
        return
    if child:
        os.close(write_fd)
        exit_code = _exit_code_of(child, read_fd)
        if exit_code < 0:
            restore_terminal()
        _leave_with(exit_code)
    os.close(read_fd)
    _exit_code_fd = write_fd
    die_with_parent(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave(exit_code: int) -> NoReturn:
    """Exit at once, without waiting for stuck threads; everything must be closed and flushed.

    The interpreter's own exit would join the threads of executors, and the kernel keeps the process until every thread
    has returned: the exit code goes to the parent through a pipe. Descriptors stay open while a thread uses them, so
    that readers of our pipes would not see their end: the standard streams are closed here.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for number in (0, 1, 2):
        with suppress(OSError):
            os.close(number)
    end_process(exit_code)


def end_process(exit_code: int) -> NoReturn:
    """Exit at once without flushing; the parent stops waiting."""
    if _exit_code_fd is not None:
        os.write(_exit_code_fd, bytes([exit_code]))
        os.kill(os.getppid(), _LEAVES)
    os._exit(exit_code)


def _exit_code_of(child: int, read_fd: int) -> int:
    """Wait for a child, and forward signals sent to this process alone; returns -n if signal n ended the child."""
    ending = 0
    while True:
        news = signal.sigwaitinfo(_AWAITED)
        if news.si_signo in _FORWARDED:
            ending += 1
            # Signals of the terminal (SI_KERNEL, above 0) reach the whole foreground group, including the child.
            if news.si_code <= 0 and signal.getsignal(news.si_signo) is not signal.SIG_IGN:
                os.kill(child, news.si_signo)
        code = _code_after(news, child, read_fd)
        if code is None and ending >= IMPATIENT:
            # The child has killed itself by now, or is stuck.
            late = signal.sigtimedwait({signal.SIGCHLD, _LEAVES}, _END_S)
            code = None if late is None else _code_after(late, child, read_fd)
            return -news.si_signo if code is None else code
        if code is not None:
            return code


def _code_after(news: signal.struct_siginfo, child: int, read_fd: int) -> int | None:
    """Return the exit code of a child that ended or reported it, None while it runs."""
    if news.si_signo == signal.SIGCHLD:
        return _status_of(child)
    if news.si_signo != _LEAVES or news.si_pid != child:
        return None
    code = os.read(read_fd, 1)[0]
    signal.sigtimedwait({signal.SIGCHLD}, _REAP_S)
    return code


def _status_of(child: int) -> int | None:
    """Return the exit code as os.waitstatus_to_exitcode, None while the child runs; stop with it if it was stopped."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        return os.waitstatus_to_exitcode(status)
    if _is_stopped(child):
        # Both get SIGCONT at once: the child may continue later.
        time.sleep(_SETTLE_S)
        if _is_stopped(child):
            _stop_with(child)
    return None


def _stop_with(child: int) -> None:
    """Stop, so that the shell sees the job stopped; afterwards continue the child if it was not."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(_SETTLE_S)
    if _is_stopped(child):
        os.kill(child, signal.SIGCONT)


def _is_stopped(child: int) -> bool:
    """Whether a child is stopped."""
    state = os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return state is not None


def _leave_with(exit_code: int) -> NoReturn:
    """Exit like the child: with its exit code, or by the signal that ended it."""
    if exit_code < 0:
        number = -exit_code
        if number not in _FORWARDED:
            say(_words_of_end(number))
        with suppress(OSError):  # SIGKILL has no action to set.
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(exit_code if exit_code >= 0 else 128 - exit_code)


def _words_of_end(number: int) -> str:
    if number == signal.SIGKILL:
        return "its process was killed: if nobody did that, the host or its control group ran out of memory: see dmesg"
    return f"its process was ended by signal {number} ({signal.strsignal(number)}): please report it"
