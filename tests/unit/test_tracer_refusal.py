"""Why the exact tier cannot work: each reason in words, with the fix, from trees that show it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from engine import _native

RELEASE = "sys/kernel/osrelease"
LOCKDOWN = "kernel/security/lockdown"
BTF = "kernel/btf/vmlinux"
TRACEPOINTS = (
    "rq_issue",
    "rq_insert",
    "rq_requeue",
    "rq_merge",
    "rq_complete",
    "bio_queue",
    "bio_complete",
    "getrq",
    "split",
)
BOTH_RIGHTS = 1 << 38 | 1 << 39


class Trees:
    """A /proc and a /sys that have all the exact tier needs, until a test spoils one."""

    def __init__(self, folder: Path) -> None:
        self.procfs, self.sysfs = folder / "proc", folder / "sys"
        self.write(self.procfs / RELEASE, "6.12.0-test\n")
        self.rights(BOTH_RIGHTS)
        self.write(self.sysfs / LOCKDOWN, "none [integrity] confidentiality\n")
        self.tracepoints(*TRACEPOINTS)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def rights(self, effective: int) -> None:
        self.write(self.procfs / "self/status", f"Name:\tx\nCapEff:\t{effective:016x}\n")

    def tracepoints(self, *names: str) -> None:
        self.write(self.sysfs / BTF, "\0" + "".join(f"btf_trace_block_{name}\0" for name in names))

    def refusal(self, *, rights: bool = True) -> str:
        return _native.tracer_refusal(str(self.procfs), str(self.sysfs), rights=rights)


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


def types_with(*names: str, bytes_of_file: int) -> bytes:
    """BTF with one structure, `struct file`, and more names."""
    strings = b"\0file\0" + b"".join(f"{name}\0".encode() for name in names)
    structure = struct.pack("=III", 1, 4 << 24, bytes_of_file)
    header = struct.pack("=HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(structure), len(structure), len(strings))
    return header + structure + strings


def accepted(refusal: str) -> bool:
    """Whether nothing is refused but what this process may be denied: the last checks are real calls."""
    return refusal == "" or refusal.startswith("bpf() is not permitted")


@pytest.mark.parametrize("release", ["4.18.0-553.el8.x86_64", "5.10.0-32-amd64", "unknown"])
def test_no_kernel_is_refused_for_its_version(release: str, trees: Trees) -> None:
    """Distributions add features to kernels that keep their number."""
    trees.write(trees.procfs / RELEASE, f"{release}\n")
    assert accepted(trees.refusal())


def test_a_kernel_without_type_information_is_named(trees: Trees) -> None:
    (trees.sysfs / BTF).unlink()
    assert trees.refusal() == (
        f"{trees.sysfs / BTF} is missing: the exact tier needs a kernel built with CONFIG_DEBUG_INFO_BTF, "
        "or a file with its types named by --btf or LUNSCOPE_BTF"
    )


@pytest.fixture
def named(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with types that is named where the kernel, whose struct file has 232 bytes, has none of its own."""
    (trees.sysfs / BTF).unlink()
    trees.write(trees.sysfs / "kernel/slab/filp/object_size", "232\n")
    path = trees.sysfs.parent / "types.btf"
    monkeypatch.setenv("LUNSCOPE_BTF", str(path))
    return path


def test_a_named_file_stands_in_for_the_types_of_the_kernel(trees: Trees, named: Path) -> None:
    named.write_bytes(types_with(*(f"btf_trace_block_{name}" for name in TRACEPOINTS), bytes_of_file=232))
    assert accepted(trees.refusal())


def test_a_named_file_of_another_kernel_is_refused(trees: Trees, named: Path) -> None:
    """Its offsets would be those of other fields, and figures of them wrong ones."""
    named.write_bytes(types_with(*(f"btf_trace_block_{name}" for name in TRACEPOINTS), bytes_of_file=184))
    assert trees.refusal() == (
        f"LUNSCOPE_BTF={named}: not the types of this kernel, whose struct file has another size: "
        "name the file of exactly this kernel"
    )


def test_a_named_file_that_is_missing_or_something_else_is_refused(trees: Trees, named: Path) -> None:
    assert trees.refusal() == f"LUNSCOPE_BTF={named}: No such file or directory: name a file that can be read"
    named.write_bytes(b"\x7fELF and so on")
    assert trees.refusal() == f"LUNSCOPE_BTF={named}: no types in BTF: name a file made by pahole or bpftool"


def test_types_of_the_kernel_itself_come_first(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNSCOPE_BTF", "/nowhere")
    assert accepted(trees.refusal())


@pytest.mark.parametrize("missing", TRACEPOINTS)
def test_a_missing_tracepoint_is_named(missing: str, trees: Trees) -> None:
    trees.tracepoints(*(name for name in TRACEPOINTS if name != missing))
    assert trees.refusal().startswith(f"the kernel has no tracepoint block_{missing}: ")


def test_what_the_kernel_lacks_is_named_before_missing_rights(trees: Trees) -> None:
    trees.rights(0)
    (trees.sysfs / BTF).unlink()
    assert trees.refusal() == trees.refusal(rights=False) != ""


def test_lockdown_counts_only_where_it_hides_memory(trees: Trees) -> None:
    trees.write(trees.sysfs / LOCKDOWN, "none integrity [confidentiality]\n")
    assert trees.refusal() == (
        "the kernel is locked down (confidentiality): boot with lockdown=integrity or less for the exact tier"
    )


@pytest.mark.parametrize(
    ("effective", "words"),
    [
        (0, "no right to trace: run as root, or with CAP_BPF and CAP_PERFMON"),
        (1 << 39, "CAP_BPF alone is not enough: add CAP_PERFMON"),
        (1 << 38, "CAP_PERFMON alone is not enough: add CAP_BPF"),
    ],
)
def test_missing_rights_are_named(effective: int, words: str, trees: Trees) -> None:
    trees.rights(effective)
    assert trees.refusal() == words
    assert trees.refusal(rights=False) == ""


@pytest.mark.parametrize("effective", [BOTH_RIGHTS, 1 << 21])
def test_with_all_it_needs_only_the_kernel_itself_may_refuse(effective: int, trees: Trees) -> None:
    trees.rights(effective)
    assert accepted(trees.refusal())
