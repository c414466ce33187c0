"""Users of bytes: processes in namespaces of their own that make layers, use one of them, and end when told."""

from __future__ import annotations

import os
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.fuzz import kernel_storage as kernel
from tests.fuzz.stacks.building import View, make_layer, unmount
from tests.fuzz.stacks.plan import Place, Plan, Use, User

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
_LARGEST = 1 << 16
_PATIENCE_S = 30.0


class _Request(Struct, frozen=True):
    """Make this layer over what is seen there; a layer of -1 is the use itself."""

    layer: int
    view: View


class _Answer(Struct, frozen=True):
    view: View
    error: str = ""


class UserProcess:
    """A user of bytes, seen from the process that tests."""

    def __init__(self, plan: Plan, user: User, folder: Path, image: bytes) -> None:
        """Fork it; `image` is a filesystem that it may mount."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(_PATIENCE_S)
        self._process = os.fork()
        if self._process == 0:
            _begin(theirs, plan, user, folder, image)
        theirs.close()
        self._receive()

    def make(self, at: int, parent: View) -> View:
        """Have a layer made.

        Raises:
            OSError: the kernel does not make it.
        """
        return self._ask(_Request(at, parent))

    def use(self, view: View) -> None:
        """Have the bytes used from now on; what was written for that is stored when this returns.

        Raises:
            OSError: the kernel does not let it.
        """
        self._ask(_Request(-1, view))

    def _ask(self, request: _Request) -> View:
        self._channel.sendall(msgspec.json.encode(request))
        return self._receive()

    def _receive(self) -> View:
        answer = msgspec.json.decode(self._channel.recv(_LARGEST) or b'{"view":{},"error":"it ended"}', type=_Answer)
        if answer.error:
            raise OSError(answer.error)
        return answer.view

    def close(self) -> None:
        """End it, and wait until what it had is gone."""
        self._channel.close()
        os.waitpid(self._process, 0)


def _begin(channel: socket.socket, plan: Plan, user: User, folder: Path, image: bytes) -> None:
    """Live as the user until the channel is closed; never returns."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        kept = os.dup2(channel.detach(), 3)
        os.closerange(4, 1 << 16)
        with socket.socket(fileno=kept) as own:
            code = _live(own, plan, user, folder, image)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _live(channel: socket.socket, plan: Plan, user: User, folder: Path, image: bytes) -> int:
    # Only who administers the machine may mount a filesystem of a device, and enters a user namespace afterwards.
    is_late = user.use is Use.MOUNTED and user.place is Place.USER
    try:
        if user.place is not Place.OWN:
            kernel.unshare(_CLONE_NEWNS)
            kernel.keep_mounts_private()
        if user.place is Place.PID:
            kernel.unshare(_CLONE_NEWPID)
            if process := os.fork():
                channel.close()
                os.waitpid(process, 0)
                return 0
        if user.place is Place.USER and not is_late:
            _enter_user_namespace()
    except OSError as error:
        channel.sendall(msgspec.json.encode(_Answer(View(), str(error))))
        return 1
    channel.sendall(msgspec.json.encode(_Answer(View())))
    with ExitStack() as undo:
        while text := channel.recv(_LARGEST):
            request = msgspec.json.decode(text, type=_Request)
            try:
                if request.layer >= 0:
                    view = make_layer(folder, plan.layers[request.layer], request.layer, request.view, undo)
                else:
                    view = request.view
                    _USES[user.use](view.path, folder, image, undo)
                    if is_late:
                        _enter_user_namespace()
                    if user.confined:
                        _confine(folder, undo)
            except OSError as error:
                channel.sendall(msgspec.json.encode(_Answer(View(), str(error))))
            else:
                channel.sendall(msgspec.json.encode(_Answer(view)))
    return 0


def _enter_user_namespace() -> None:
    """Enter one that has all users, as the nodes of devices may belong to any; who stays outside may map them."""
    process, (entered, say) = os.getpid(), os.pipe()
    outside = os.fork()
    if outside == 0:
        try:
            os.read(entered, 1)
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{process}/{name}").write_text("0 0 4294967295")
        finally:
            os._exit(0)
    kernel.unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
    os.write(say, b".")
    os.waitpid(outside, 0)
    os.close(entered)
    os.close(say)


def _confine(folder: Path, undo: ExitStack) -> None:
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot(folder)
    undo.callback(os.chroot, ".")
    undo.callback(os.fchdir, root)


def _mounted(path: str, folder: Path, image: bytes, undo: ExitStack) -> None:
    _store(path, image)
    point = str(folder / "mount")
    kernel.mount(path, point)
    undo.callback(unmount, point)
    descriptor = os.open(point, os.O_RDONLY)
    kernel.sync_filesystem(descriptor)
    os.close(descriptor)


def _claimed(path: str, folder: Path, image: bytes, undo: ExitStack) -> None:
    undo.callback(os.close, os.open(path, os.O_RDONLY | os.O_EXCL))


def _open(path: str, folder: Path, image: bytes, undo: ExitStack) -> None:
    undo.callback(os.close, os.open(path, os.O_RDWR))


def _registered(path: str, folder: Path, image: bytes, undo: ExitStack) -> None:
    undo.callback(os.close, kernel.register_with_ring(path))


def _swapped_on(path: str, folder: Path, image: bytes, undo: ExitStack) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    size = os.lseek(descriptor, 0, os.SEEK_END)
    os.close(descriptor)
    _store(path, kernel.swap_header(size))
    kernel.swap_on(path)
    undo.callback(kernel.swap_off, path)


def _store(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, data, 0)
    os.fsync(descriptor)
    os.close(descriptor)


_USES: dict[Use, Callable[[str, Path, bytes, ExitStack], None]] = {
    Use.MOUNTED: _mounted,
    Use.CLAIMED: _claimed,
    Use.OPEN: _open,
    Use.MAPPED: lambda path, *_: kernel.map_shared(path, writable=True),
    Use.MAPPED_READ_ONLY: lambda path, *_: kernel.map_shared(path, writable=False),
    Use.RING: _registered,
    Use.SWAP: _swapped_on,
}
