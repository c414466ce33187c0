"""bpf() by hand (linux/bpf.h): which programs the kernel holds, and programs that do nothing."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SYSCALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _PROG_GET_NEXT_ID, _TRACEPOINT_OPEN = 5, 11, 17
_TRACING, _RAW_TRACEPOINT = 26, 23
_TYPEDEF = 8

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes | bytearray) -> tuple[int, bytes]:
    """Return the result and what the call left in its attributes."""
    area = (ctypes.c_char * len(attributes)).from_buffer_copy(attributes)
    result = int(_libc.syscall(_SYSCALLS[os.uname().machine], command, area, len(attributes)))
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result, bytes(area)


def program_ids() -> Iterator[int]:
    """Every program the kernel holds."""
    last = 0
    while True:
        try:
            _, answer = _bpf(_PROG_GET_NEXT_ID, struct.pack("<3I", last, 0, 0))
        except FileNotFoundError:
            return
        last = struct.unpack_from("<I", answer, 4)[0]
        yield last


def programs_of(process: int) -> set[int]:
    """Programs a process holds by descriptor."""
    found = set()
    for info in Path(f"/proc/{process}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            lines = info.read_text().splitlines()
            found |= {int(line.split()[1]) for line in lines if line.startswith("prog_id:")}
    return found


def typedef_id(name: str, btf: Path = Path("/sys/kernel/btf/vmlinux")) -> int:
    """Number of a typedef in the kernel's type information (Documentation/bpf/btf.rst)."""
    data = btf.read_bytes()
    _, _, _, header, types, types_length, strings, _ = struct.unpack_from("<HBB5I", data)
    wanted = data.index(b"\0" + name.encode() + b"\0", header + strings) + 1 - header - strings
    extra = {1: 4, 3: 12, 14: 4, 17: 4}
    per_member = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
    position, number = header + types, 0
    while position < header + types + types_length:
        number += 1
        offset, info = struct.unpack_from("<2I", data, position)
        kind, members = info >> 24 & 0x1F, info & 0xFFFF
        if kind == _TYPEDEF and offset == wanted:
            return number
        position += 12 + extra.get(kind, 0) + per_member.get(kind, 0) * members
    raise LookupError(name)


def load_empty(tracepoint: str) -> int:
    """Load a program that does nothing for a tracepoint; it returns 0. The descriptor belongs to the caller."""
    code = (ctypes.c_char * 16).from_buffer_copy(struct.pack("<2Q", 0xB7, 0x95))
    licence = ctypes.create_string_buffer(b"MIT")
    attributes = bytearray(128)
    struct.pack_into("<2IQQ", attributes, 0, _TRACING, 2, ctypes.addressof(code), ctypes.addressof(licence))
    struct.pack_into("<I", attributes, 68, _RAW_TRACEPOINT)
    struct.pack_into("<I", attributes, 108, typedef_id(f"btf_trace_{tracepoint}"))
    return _bpf(_PROG_LOAD, attributes)[0]


def attach(program: int) -> int:
    """Attach a loaded program; closing the descriptor detaches it."""
    return _bpf(_TRACEPOINT_OPEN, struct.pack("<QI4xQ", 0, program, 0))[0]
