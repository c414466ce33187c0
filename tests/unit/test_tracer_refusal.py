"""Why the exact tier cannot work: each reason in words, with the fix, from trees that show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import _native

RELEASE = "sys/kernel/osrelease"
LOCKDOWN = "kernel/security/lockdown"
BTF = "kernel/btf/vmlinux"
TRACEPOINTS = ("rq_issue", "rq_insert", "rq_requeue", "rq_merge", "rq_complete", "bio_queue", "bio_complete", "getrq")
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


def test_an_old_kernel_is_named(trees: Trees) -> None:
    trees.write(trees.procfs / RELEASE, "5.10.0-32-amd64\n")
    assert trees.refusal() == "kernel 5.10.0-32-amd64 is too old: the exact tier needs Linux 5.12 or newer"


def test_a_kernel_without_type_information_is_named(trees: Trees) -> None:
    (trees.sysfs / BTF).unlink()
    assert trees.refusal() == (
        f"{trees.sysfs / BTF} is missing: the exact tier needs a kernel built with CONFIG_DEBUG_INFO_BTF"
    )


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
    """The last check is a real call, which this process may be denied."""
    trees.rights(effective)
    assert trees.refusal() == "" or trees.refusal().startswith("bpf() is not permitted")
