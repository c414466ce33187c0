"""A copy of this installation for hosts without one: sent before the first frame, checked, run and removed there."""

from __future__ import annotations

import hashlib
import io
import platform
import shlex
import zipfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from msgspec import Struct

_FOLDERS = ("engine", "collectors", "tui", "themes")
_SUFFIXES = {".py", ".so", ".toml", ".tcss"}
_LEFT_OUT = {"__pycache__", "native"}
_NEEDS = ("numpy", "psutil", "pyudev", "click", "msgspec")

# It reads exactly the copy: what follows on standard input is for the agent. It stays as the parent of the agent, so
# that the folder goes however the agent ends; sshd closes standard input when the controller is killed, which ends it.
_BOOTSTRAP = """
import sys
FIX = ": install lunscope there, or name another Python with --python"
if sys.version_info < (3, 11):
    sys.exit("--push: Python %d.%d there, needs 3.11 or later" % sys.version_info[:2] + FIX)
import hashlib, importlib.util, io, os, platform, shutil, signal, subprocess, tempfile, zipfile
missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
if missing:
    sys.exit("--push: no Python package " + ", ".join(missing) + " there" + FIX)
if platform.machine() != MACHINE:
    sys.exit("--push: " + platform.machine() + " there, " + MACHINE + " here" + FIX)
data = bytearray()
while len(data) < SIZE:
    part = os.read(0, min(SIZE - len(data), 1 << 20))
    if not part:
        sys.exit("--push: the connection was closed while lunscope was copied")
    data += part
if hashlib.sha256(data).hexdigest() != SHA256:
    sys.exit("--push: the copy of lunscope arrived damaged: its SHA-256 differs")
folder = tempfile.mkdtemp(prefix="lunscope-")
code, agents = 1, []
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: [agent.terminate() for agent in agents])
try:
    zipfile.ZipFile(io.BytesIO(data)).extractall(folder)
    del data
    environment = dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1")
    agent = subprocess.Popen([sys.executable, "-P", "-m", "tui", "agent", "--stdio"], env=environment)
    agents.append(agent)
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    code = agent.wait()
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code if code >= 0 else 128 - code)
"""


class PushedAgent(Struct, frozen=True):
    """What runs on a host, and what it reads before the first frame."""

    command: str
    payload: bytes


def pushed_agent(python: str = "python3") -> PushedAgent:
    """Pack this installation, and the command that takes it there with `python`, which may have words before it."""
    payload = _packed()
    facts = {
        "NEEDS": _NEEDS,
        "MACHINE": platform.machine(),
        "SIZE": len(payload),
        "SHA256": hashlib.sha256(payload).hexdigest(),
    }
    script = "".join(f"{name} = {value!r}\n" for name, value in facts.items()) + _BOOTSTRAP
    return PushedAgent(f"exec {python} -c {shlex.quote(script)}", payload)


def _packed() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in _files():
            archive.write(path, name)
    return buffer.getvalue()


def _files() -> Iterator[tuple[str, Path]]:
    for folder in _FOLDERS:
        with resources.as_file(resources.files(folder)) as root:
            for path in sorted(root.rglob("*")):
                parts = path.relative_to(root)
                if path.suffix in _SUFFIXES and not _LEFT_OUT & set(parts.parts[:-1]):
                    yield str(Path(folder) / parts), path
