"""Texts of /proc/self/mountstats, and the files of /proc and /sys that a reader of NFS mounts needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OTHERS = "device proc mounted on /proc with fstype proc\ndevice /dev/vda mounted on / with fstype ext4\n"
TCP = "tcp 0 0 2 0 0 {sends} {sends} 0 {sends} 0 10 0 {sends}"
UDP = "udp 801 1 500 498 2 900 4 16 7 800"
RDMA = "rdma 0 0 1 0 3 100 99 1 300 5 10 20 30 4096 8192 1 2 3 4 5 6 7 8 9 10 11 12"


@dataclass(frozen=True)
class FakeMount:
    """One mount; `operations` are the fields behind the names."""

    point: str = "/mnt"
    export: str = "server:/export"
    version: str = "4.2"
    protocol: str = "tcp"
    transports: Sequence[str] = ("tcp 0 0 2 0 0 100 100 0 300 0 10 50 200",)
    operations: Mapping[str, str] = field(default_factory=lambda: {"READ": "100 100 0 1000 400000 200 500 800 0"})
    bytes: str = "4096 0 65536 0 65536 0 16 0"

    @property
    def text(self) -> str:
        """As the kernel prints it."""
        kind = "nfs4" if self.version.startswith("4") else "nfs"
        options = (
            f"rw,vers={self.version},rsize=131072,hard,proto={self.protocol},nconnect={len(self.transports)},sec=sys"
        )
        lines = [
            f"device {self.export} mounted on {self.point} with fstype {kind} statvers=1.1",
            f"\topts:\t{options}",
            "\tage:\t22",
            "\timpl_id:\tname='',domain='',date='0,0'",
            "\tcaps:\tcaps=0xfffbc0bf,wtmult=512,dtsize=131072,bsize=0,namlen=255",
            "\tsec:\tflavor=1,pseudoflavor=1",
            "\tevents:\t1 4 0 2 0 1 10 12288 0 0 0 1 0 1 2 1 0 2 0 0 0 0 0 0 0 0 0 ",
            f"\tbytes:\t{self.bytes} ",
            f"\tRPC iostats version: 1.1  p/v: 100003/{self.version[0]} (nfs)",
            *(f"\txprt:\t{each}" for each in self.transports),
            "\tper-op statistics",
            *(f"\t{name:>12}: {values}" for name, values in self.operations.items()),
            "",
        ]
        return "\n".join(lines) + "\n"


def write_mountstats(procfs: Path, *mounts: FakeMount, address: str = "192.0.2.1") -> None:
    """Write what the reader needs of procfs."""
    (procfs / "fs/nfsfs").mkdir(parents=True, exist_ok=True)
    (procfs / "self").mkdir(exist_ok=True)
    (procfs / "self/mountstats").write_text(OTHERS + "".join(mount.text for mount in mounts))
    infos = [
        f"{at + 50} 1 0:{at} / {mount.point} rw,relatime shared:{at} - nfs {mount.export} rw,addr={address}\n"
        for at, mount in enumerate(mounts)
    ]
    (procfs / "self/mountinfo").write_text("21 1 254:0 / / rw - ext4 /dev/vda rw\n" + "".join(infos))


def write_switch(
    sysfs: Path, number: int, first: int, infos: Sequence[Mapping[str, object]], *, address: str = "192.0.2.1"
) -> None:
    """Write a switch with a TCP transport for each of `infos`, numbered from `first` on."""
    for at, info in enumerate(infos, start=first):
        folder = sysfs / f"kernel/sunrpc/xprt-switches/switch-{number}/xprt-{at}-tcp"
        folder.mkdir(parents=True)
        (folder / "dstaddr").write_text(f"{address}\n")
        (folder / "xprt_state").write_text("state= CONNECTED   BOUND       \n")
        values = {"num_reqs": 2, "max_num_slots": 65536, "pending_q_len": 0, "src_port": 900, "dst_port": 2049, **info}
        (folder / "xprt_info").write_text("".join(f"{name}={value}\n" for name, value in values.items()))


def write_client(sysfs: Path, client: int, *, switch: int, of: str = "", link: str = "nfs_client") -> None:
    """Write an RPC client that uses a switch, and the link to it of the file system `of` (Linux 6.5)."""
    folder = sysfs / f"kernel/sunrpc/rpc-clients/clnt-{client}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "switch").is_symlink():
        (folder / "switch").symlink_to(f"../../xprt-switches/switch-{switch}")
    if of:
        (sysfs / f"fs/nfs/{of}").mkdir(parents=True, exist_ok=True)
        (sysfs / f"fs/nfs/{of}/{link}").symlink_to(f"../../../kernel/sunrpc/rpc-clients/clnt-{client}")
