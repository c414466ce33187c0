"""What a test needs of the machine; each need skips with a reason a person can act on.

Use as a marker: `@needs.root`, `@needs.loop`. The skips are listed at the end of every run.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


def _need(name: str, probe: Callable[[], str]) -> pytest.MarkDecorator:
    reason = probe()
    return pytest.mark.skipif(bool(reason), reason=f"needs {name}: {reason}")


def _root() -> str:
    return "" if os.geteuid() == 0 else "not root"


@functools.cache
def _loop() -> str:
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/loop-control").exists() or not shutil.which("losetup"):
        return "no loop devices or no losetup here"
    probe = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return "" if probe.returncode == 0 else f"losetup --find: {probe.stderr.strip()}"


@functools.cache
def _io_uring() -> str:
    from engine import _native

    return _native.uring_refusal()


def _tracer() -> str:
    from engine import _native

    return _native.tracer_refusal()


def _tool(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"{name} is not installed"


@functools.cache
def _fuse() -> str:
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/fuse").exists():
        return "no /dev/fuse here"
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    return "" if probe.returncode == 0 else probe.stderr.strip()


def _memory_group() -> str:
    from tests.kernel import memory_group

    return memory_group.refusal()


def _device_mapper() -> str:
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/mapper/control").exists():
        return "the kernel has no device mapper (/dev/mapper/control)"
    return _tool("dmsetup")()


def _swap() -> str:
    return _root() or ("" if Path("/proc/swaps").exists() else "the kernel has no swap") or _tool("mkswap")()


root = _need("root", _root)
loop = _need("loop devices", _loop)
io_uring = _need("io_uring", _io_uring)
tracer = _need("the exact tier", _tracer)
fio = _need("fio", _tool("fio"))
mkfs_ext4 = _need("mkfs.ext4", _tool("mkfs.ext4"))
mkfs_erofs = _need("mkfs.erofs", _tool("mkfs.erofs"))
fsfreeze = _need("fsfreeze", _tool("fsfreeze"))
iostat = _need("iostat", _tool("iostat"))
systemd_analyze = _need("systemd-analyze", _tool("systemd-analyze"))
tmux = _need("tmux", _tool("tmux"))
chromium = _need("chromium", _tool("chromium"))
fuse = _need("FUSE in a mount namespace", _fuse)
law_files = _need("FUSE and a C compiler", lambda: _fuse() or _tool("cc")())
memory_group = _need("a control group with a limit of memory", _memory_group)
device_mapper = _need("device mapper", _device_mapper)
swap = _need("swap", _swap)


def _lab() -> str:
    folder = os.environ.get("LUNSCOPE_LAB", "")
    if not folder:
        return "LUNSCOPE_LAB does not name the folder of the storage lab"
    return "" if Path(folder, "fixtures").is_dir() else f"LUNSCOPE_LAB={folder} has no fixtures"


lab = _need("the storage lab", _lab)


def _guest() -> str:
    if os.environ.get("LUNSCOPE_GUEST") != "1":
        return "minutes each: run make lab-test, or set LUNSCOPE_GUEST=1"
    return _lab() or _tool("qemu-system-x86_64")()


def _truth() -> str:
    return "" if os.environ.get("LUNSCOPE_TRUTH") == "1" else "minutes each: run make truth, or set LUNSCOPE_TRUTH=1"


truth = _need("time", _truth)
guest = _need("a guest of the storage lab", _guest)


def _library(name: str) -> Callable[[], str]:
    found = importlib.util.find_spec(name) is not None
    return lambda: "" if found else "not installed: pip install -r requirements-oracles.txt"


kneed = _need("kneed", _library("kneed"))
kim_convergence = _need("kim-convergence", _library("kim_convergence"))
mlrsearch = _need("MLRsearch", _library("MLRsearch"))
arch = _need("arch", _library("arch"))


def _extra(module: str, extra: str) -> Callable[[], str]:
    found = importlib.util.find_spec(module) is not None
    return lambda: "" if found else f"not installed: pip install '.[{extra}]'"


def _prometheus_tool(name: str) -> Callable[[], str]:
    def probe() -> str:
        return "" if prometheus_tool(name) else f"{name} is in neither PATH nor the folder LUNSCOPE_PROMETHEUS"

    return probe


def prometheus_tool(name: str) -> str | None:
    """Path of `prometheus` or `promtool`."""
    return shutil.which(name, path=os.environ.get("LUNSCOPE_PROMETHEUS")) or shutil.which(name)


prometheus = _need("prometheus", _prometheus_tool("prometheus"))
promtool = _need("promtool", _prometheus_tool("promtool"))
prometheus_client = _need("prometheus_client", _extra("prometheus_client", "metrics"))


def _fleet() -> str:
    if importlib.util.find_spec("ClusterShell") is None:
        return "ClusterShell is not installed: pip install '.[fleet]'"
    if shutil.which("ssh") is None or not Path("/usr/sbin/sshd").exists():
        return "no ssh or no sshd here: install openssh-server"
    return _root()


cluster_shell = _need(
    "ClusterShell", lambda: "" if importlib.util.find_spec("ClusterShell") else "pip install '.[fleet]'"
)
fleet = _need("sshd of its own and ClusterShell", _fleet)
network_namespaces = _need("network namespaces", lambda: _root() or _tool("ip")())
