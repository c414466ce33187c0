"""The exact tier with less than all rights: each lack is said in one line with the fix, and nothing else breaks."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from engine import _native
from tests import needs

pytestmark = [needs.root, needs.tracer]

NOBODY = 65_534
CAP_PERFMON, CAP_BPF = 38, 39

TRY_AS_NOBODY = """
import ctypes, json, os, struct, sys
import numpy
from engine import _native
user, capabilities = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_KEEPCAPS, VERSION_3 = 8, 0x20080522
libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
mask = sum(1 << capability for capability in capabilities)
low, high = mask & 0xFFFFFFFF, mask >> 32
assert libc.capset(struct.pack("<Ii", VERSION_3, 0), struct.pack("<6I", low, low, 0, high, high, 0)) == 0
try:
    tracer = _native.BlockTracer()
    tracer.watch_tag_wait(True)
    tracer.read()
    tracer.close()
    failure = ""
except OSError as error:
    failure = str(error)
print(json.dumps([_native.tracer_refusal(), failure]))
"""


def try_with(*capabilities: int) -> tuple[str, str]:
    """What is said beforehand, and what happens, as a user with these capabilities only."""
    arguments = json.dumps([NOBODY, capabilities])
    command = [sys.executable, "-c", TRY_AS_NOBODY, arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    refusal, failure = json.loads(done.stdout)
    return refusal, failure


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        ((), "no right to trace"),
        ((CAP_BPF,), "CAP_BPF alone is not enough"),
        ((CAP_PERFMON,), "CAP_PERFMON alone is not enough"),
    ],
)
def test_without_the_rights_it_is_refused_in_words(capabilities: tuple[int, ...], words: str) -> None:
    refusal, failure = try_with(*capabilities)
    assert words in refusal
    assert failure.startswith("[Errno ")
    assert "CAP_BPF and CAP_PERFMON" in failure


def test_two_capabilities_are_enough() -> None:
    assert try_with(CAP_BPF, CAP_PERFMON) == ("", "")


def test_a_low_limit_of_locked_memory_does_not_matter() -> None:
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, before[1]))
    try:
        _native.BlockTracer().close()
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def test_a_missing_folder_is_named(tmp_path: str) -> None:
    with pytest.raises(OSError, match="kernel/btf/vmlinux is missing"):
        _native.BlockTracer(str(tmp_path))
