"""Where stacks are made: a mount namespace and folders of its own, of which nothing outlives this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

from engine.config import SCRATCH_ENV
from engine.replacing import replace
from tests.fuzz import kernel_storage as kernel
from tests.fuzz.stacks.judging import Outcome, judge
from tests.fuzz.stacks.plan import Plan, Use, in_words, is_file, plan_text

_CLONE_NEWNS = 0x20000
_IMAGE_KIB = 1024
_SWAP_BYTES = 1 << 20


class Workplace:
    """Two folders, one in memory, and a filesystem that is copied instead of made."""

    def __init__(self, memory: Path, disk: Path) -> None:
        self._folders = {True: disk, False: memory}
        self._count = 0
        image = memory / "image"
        command = ["mkfs.ext4", "-qFN16", "-O", "^has_journal", "-E", "lazy_itable_init=0", str(image), str(_IMAGE_KIB)]
        subprocess.run(command, check=True, capture_output=True)
        self._image = image.read_bytes()

    def try_plan(self, plan: Plan) -> Outcome:
        """Try one plan; its user has open what this machine does not swap to, or shows by half a name if a ring has it.

        Raises:
            AssertionError: the stack cannot be made, or something is left of it.
        """
        if plan.user and (
            (plan.user.use is Use.SWAP and not self._swaps_to(plan))
            or (plan.user.use is Use.RING and is_file(plan, plan.user.at) and not self._rings_show_paths)
        ):
            plan = replace(plan, user=replace(plan.user, use=Use.OPEN))
        on_disk = plan.user is not None and plan.user.use is Use.SWAP and is_file(plan, plan.user.at)
        folder = self._folders[on_disk] / f"stack{os.getpid()}-{self._count}"
        self._count += 1
        folder.mkdir()
        try:
            return judge(plan, folder, self._image)
        except OSError as error:
            raise AssertionError(f"{in_words(plan)}: cannot be made: {error}\n{plan_text(plan)}") from error
        finally:
            shutil.rmtree(folder)

    def _swaps_to(self, plan: Plan) -> bool:
        """Whether the kernel swaps to what a plan has for that; not to files on filesystems without extents."""
        assert plan.user is not None
        if not Path("/proc/swaps").exists():
            return False
        return not is_file(plan, plan.user.at) or self._swaps_to_files

    @cached_property
    def _swaps_to_files(self) -> bool:
        path = self._folders[True] / "swap"
        path.write_bytes(kernel.swap_header(_SWAP_BYTES).ljust(_SWAP_BYTES, b"\0"))
        path.chmod(0o600)
        try:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            kernel.swap_on(str(path))
        except OSError:
            return False
        kernel.swap_off(str(path))
        return True

    @cached_property
    def _rings_show_paths(self) -> bool:
        """Whether the kernel shows paths of what a ring has; older ones show names, which need --destroy-data."""
        path = self._folders[False] / "image"
        ring = kernel.register_with_ring(str(path))
        shown = Path(f"/proc/self/fdinfo/{ring}").read_text()
        os.close(ring)
        return str(path) in shown


def folder_prefix(process: int) -> str:
    """How the names of all folders begin that a process makes, by which one finds what is left of it."""
    return f"lunscope-stacks-{process}-"


@contextmanager
def workplace() -> Iterator[Workplace]:
    """Enter a mount namespace of its own, for good; devices are detached with the last descriptor of them."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    kernel.unshare(_CLONE_NEWNS)
    kernel.keep_mounts_private()
    with ExitStack() as stack:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        prefix = folder_prefix(os.getpid())
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory("", prefix, each))) for each in (memory, None)]
        stack.enter_context(patch.dict(os.environ, {SCRATCH_ENV: str(folders[0] / "scratch")}))
        # How long the guard gives others to let go: nobody does here.
        stack.enter_context(patch("engine.guard.claims._BETWEEN_TRIES_S", 0.001))
        stack.enter_context(patch("engine.guard.claiming._RELEASE_S", 0.05))
        stack.enter_context(patch("engine.guard.permission._RELEASE_S", 0.05))
        yield Workplace(*folders)
