"""What the kernel serves to others, as configfs, sysfs and the tables of nfsd have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.hostfs.exports import Exports, read_exports
from engine.hostfs.kernel_files import Roots
from engine.hostfs.stored_file import StoredFile, stored_file


def of(path: Path) -> StoredFile:
    with path.open() as file:
        return stored_file(file.fileno())


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def exports(tmp_path: Path, *namespaces: str) -> Exports:
    return read_exports(Roots(tmp_path / "proc", tmp_path / "sys"), namespaces or ("",))


@pytest.mark.parametrize(
    ("attribute", "text", "words"),
    [
        ("kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path", "{}\n", "is exported by the NVMe target"),
        ("kernel/config/target/core/fileio_0/disk/udev_path", "{}\n", "is exported by the SCSI target (LIO)"),
        (
            "kernel/config/target/core/fileio_0/disk/info",
            "Status: ACTIVATED  Max Queue Depth: 0\n  TCM FILEIO ID: 0        File: {}  Size: 1048576  Mode: O_DSYNC",
            "is exported by the SCSI target (LIO)",
        ),
        ("kernel/scst_tgt/devices/disk/filename", "{}\n[key]\n", "is exported by the SCSI target (SCST)"),
        ("kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file", "{}\n", "is exported by a USB gadget"),
        ("block/zram0/backing_dev", "{}\n", "backs a zram device"),
    ],
)
def test_servers_of_the_kernel(tmp_path: Path, attribute: str, text: str, words: str) -> None:
    image = tmp_path / "an image.img"
    image.write_bytes(b"x")
    write(tmp_path / "sys", attribute, text.format(image))
    found = exports(tmp_path)
    assert found.users.of_file(of(image), lambda _: False) == words
    assert not found.unknown
    image.unlink()
    assert exports(tmp_path).unknown == [f"{image}, which {words}, cannot be found"]


def test_a_zram_device_without_a_backing_device(tmp_path: Path) -> None:
    write(tmp_path / "sys", "block/zram0/backing_dev", "none\n")
    assert not exports(tmp_path).unknown


def test_a_path_of_the_container_that_set_a_server_up(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "images/disk", "x")
    write(tmp_path / "sys", "kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path", "/images/disk\n")
    found = exports(tmp_path, "", str(root))
    assert found.users.of_file(of(root / "images/disk"), lambda _: False)


def test_folders_that_nfs_clients_may_write_to(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("data set/disk", "read/disk", "other/disk"):
        write(root, f"srv/{name}", "x")
    table = "/srv/data\\040set\t10.0.0.0/8(rw,sync,no_subtree_check) *(ro)\n/srv/read\t*(ro,sync)\n"
    write(root, "var/lib/nfs/etab", table)
    assert exports(tmp_path, str(root)).above(of(root / "srv/data set/disk")) is None, "nfsd is not loaded"
    (tmp_path / "proc/fs/nfsd").mkdir(parents=True)
    found = exports(tmp_path, str(root))
    with (root / "srv/data set/disk").open() as file:
        assert found.above(stored_file(file.fileno())) == "/srv/data set"
    for name in ("read/disk", "other/disk"):
        with (root / "srv" / name).open() as file:
            assert found.above(stored_file(file.fileno())) is None
