"""What a device carries: filesystem, volume, RAID, encryption, swap, partition table, image, archive, dump, database.

Offsets and magics are those of the formats themselves, as collected in util-linux (libblkid/src/superblocks/*.c and
libblkid/src/partitions/*.c), QEMU (block/*.c) and file(1) (magic/Magdir). Checksums are not verified: a damaged
superblock still means data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

_KIB = 1024
_MIB = 1024 * _KIB
_ZFS_LABEL_BYTES = 256 * _KIB


class Magic(Struct, frozen=True):
    """Bytes at fixed offsets that identify a format."""

    name: str
    magic: bytes
    offsets: tuple[int, ...]


def _le(value: int, length: int = 4) -> bytes:
    return value.to_bytes(length, "little")


def _be(value: int, length: int = 4) -> bytes:
    return value.to_bytes(length, "big")


_PAGES = (4 * _KIB, 8 * _KIB, 16 * _KIB, 32 * _KIB, 64 * _KIB)
_PAGE_ENDS = tuple(page - 10 for page in _PAGES)
_LVM_LABELS = (0x000, 0x200, 0x400, 0x600)
_LUKS2_SECOND = tuple(0x4000 << shift for shift in range(9))
_UFS_MAGICS = tuple(offset * _KIB + 1372 for offset in (0, 8, 64, 256))

HEAD: tuple[Magic, ...] = (
    Magic("ext2/3/4 filesystem", b"\x53\xef", (0x438,)),
    Magic("xfs filesystem", b"XFSB", (0,)),
    Magic("xfs log", b"\xfe\xed\xba\xbe", tuple(range(0, 256 * _KIB, 512))),
    Magic("btrfs filesystem", b"_BHRfS_M", (0x10040, 64 * _MIB + 0x40, 256 * 1024 * _MIB + 0x40)),
    Magic("f2fs filesystem", _le(0xF2F52010), (0x400, 0x1400)),
    *(Magic("vfat filesystem", magic, (0x36,)) for magic in (b"MSDOS", b"FAT12   ", b"FAT16   ", b"FAT     ")),
    *(Magic("vfat filesystem", magic, (0x52,)) for magic in (b"MSWIN", b"FAT32   ")),
    Magic("exfat filesystem", b"EXFAT   ", (3,)),
    Magic("ntfs filesystem", b"NTFS    ", (3,)),
    Magic("ReFS filesystem", b"\0\0\0ReFS\0", (0,)),
    Magic("hpfs filesystem", b"\x49\xe8\x95\xf9", (0x2000,)),
    Magic("BitLocker volume", b"-FVE-FS-", (3,)),
    Magic("iso9660 filesystem", b"CD001", (0x8001,)),
    Magic("udf filesystem", b"BEA01", (0x8001,)),
    Magic("udf filesystem", b"NSR0", (0x8001, 0x8801, 0x9001)),
    Magic("squashfs filesystem", b"hsqs", (0,)),
    Magic("squashfs filesystem", b"sqsh", (0,)),
    Magic("cramfs filesystem", _le(0x28CD3D45), (0, 0x200)),
    Magic("cramfs filesystem", _be(0x28CD3D45), (0, 0x200)),
    Magic("erofs filesystem", _le(0xE0F5E1E2), (0x400,)),
    Magic("romfs filesystem", b"-rom1fs-", (0,)),
    Magic("jfs filesystem", b"JFS1", (0x8000,)),
    Magic("reiserfs filesystem", b"ReIsEr", (0x2034, 0x10034, 0x10000)),
    Magic("nilfs2 filesystem", b"\x34\x34", (0x406,)),
    Magic("gfs2 filesystem", _be(0x01161970), (0x10000,)),
    Magic("ocfs2 filesystem", b"OCFSV2", (0x400, 0x800, 0x1000, 0x2000)),
    Magic("ocfs filesystem", b"OracleCFS", (8, 0x2000)),
    Magic("vxfs filesystem", _le(0xA501FCF5), (0x400,)),
    Magic("vxfs filesystem", _be(0xA501FCF5), (0x2000,)),
    *(Magic("ufs filesystem", _le(magic), _UFS_MAGICS) for magic in (0x00011954, 0x19540119)),
    *(Magic("ufs filesystem", _be(magic), _UFS_MAGICS) for magic in (0x00011954, 0x19540119)),
    *(Magic("minix filesystem", _le(magic, 2), (0x410,)) for magic in (0x137F, 0x138F, 0x2468, 0x2478)),
    Magic("minix filesystem", _le(0x4D5A, 2), (0x418,)),
    Magic("befs filesystem", b"1SFB", (0x20, 0x220)),
    Magic("befs filesystem", b"BFS1", (0x20, 0x220)),
    Magic("scoutfs filesystem", _le(0x103C428B, 4), (0x10000,)),
    Magic("zonefs filesystem", b"SFOZ", (0,)),
    Magic("hfs+ filesystem", b"H+", (0x400,)),
    Magic("hfs+ filesystem", b"HX", (0x400,)),
    Magic("hfs filesystem", b"BD", (0x400,)),
    Magic("apfs container", b"NXSB", (0x20,)),
    Magic("VMFS filesystem", _le(0x2FABF15E), (2 * _MIB,)),
    Magic("VMFS volume", _le(0xC001D00D), (_MIB,)),
    Magic("NetWare volume", b"SPB005\0\0", (0x1000,)),
    Magic("Ceph BlueStore", b"bluestore block device", (0,)),
    Magic("Oracle ASM disk", b"ORCLDISK", (32,)),
    Magic("swap", b"SWAP-SPACE", _PAGE_ENDS),
    Magic("swap", b"SWAPSPACE2", _PAGE_ENDS),
    Magic("hibernation image", b"S1SUSPEND", _PAGE_ENDS),
    Magic("hibernation image", b"S2SUSPEND", _PAGE_ENDS),
    Magic("hibernation image", b"ULSUSPEND", _PAGE_ENDS),
    Magic("hibernation image", b"LINHIB0001", _PAGE_ENDS),
    Magic("hibernation image", b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c", (0,)),
    Magic("LVM physical volume", b"LABELONE", _LVM_LABELS),
    Magic("LVM physical volume", b"LVM2 001", tuple(label + 0x18 for label in _LVM_LABELS)),
    Magic("LVM1 physical volume", b"HM\x01\0", (0,)),
    Magic("LVM1 physical volume", b"HM\x02\0", (0,)),
    Magic("LVM snapshot", b"SnAp", (0,)),
    Magic("dm-verity hash", b"verity\0\0", (0,)),
    Magic("dm-integrity device", b"integrt\0", (0,)),
    Magic("VDO volume", b"dmvdo001", (0,)),
    Magic("Stratis pool member", b"!Stra0tis\x86\xff\x02^\x41rh", (0x204, 0x1204)),
    Magic("LUKS1 volume", b"LUKS\xba\xbe\0\x01", (0,)),
    Magic("LUKS2 volume", b"LUKS\xba\xbe\0\x02", (0,)),
    Magic("LUKS2 volume", b"SKUL\xba\xbe\0\x02", _LUKS2_SECOND),
    Magic("md RAID member", _le(0xA92B4EFC), (0, 0x1000)),
    Magic("bcache device", bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"), (0x1018,)),
    Magic("bcachefs filesystem", bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef"), (0x1018,)),
    Magic("GPT partition table", b"EFI PART", (512, 4096)),
    Magic("partition table or boot sector", b"\x55\xaa", (510,)),
    Magic("BSD disk label", _le(0x82564557), (0x40, 0x200)),
    Magic("Sun disk label", _be(0xDABE, 2), (508,)),
    Magic("SGI disk label", _be(0x0BE5A941), (0,)),
    Magic("Mac partition map", b"PM\0\0", (512,)),
    Magic("Mac partition map", b"ER\x02\0", (0,)),
    Magic("Amiga partition table", b"RDSK", tuple(sector * 512 for sector in range(16))),
    Magic("AIX volume", b"\xc9\xc2\xd4\xc1", (0,)),
    Magic("Windows dynamic disk", b"PRIVHEAD", (0xC00,)),
    Magic("SPDK blobstore", b"SPDKBLOB", (0,)),
    Magic("qcow image", b"QFI\xfb\0\0\0\x01", (0,)),
    *(Magic("qcow2 image", b"QFI\xfb" + _be(version), (0,)) for version in (2, 3)),
    Magic("QED image", b"QED\0", (0,)),
    Magic("VMDK image", b"KDMV", (0,)),
    Magic("VMDK image", b"COWD", (0,)),
    Magic("VMDK image", _le(0xCAFEBABE, 8), (0,)),
    Magic("VMDK descriptor", b"# Disk DescriptorFile", (0,)),
    Magic("VHDX image", b"vhdxfile", (0,)),
    Magic("VHD image", b"conectix", (0,)),
    Magic("VDI image", _le(0xBEDA107F), (0x40,)),
    Magic("Parallels image", b"WithoutFreeSpace", (0,)),
    Magic("Parallels image", b"WithouFreSpacExt", (0,)),
    Magic("Bochs image", b"Bochs Virtual HD Image", (0,)),
    Magic("WIM image", b"MSWIM\0\0\0", (0,)),
    Magic("partclone image", b"partclone-image", (0,)),
    Magic("Android sparse image", _le(0xED26FF3A), (0,)),
    Magic("tar archive", b"ustar", (257,)),
    Magic("cpio archive", b"07070", (0,)),
    Magic("ar archive", b"!<arch>\n", (0,)),
    *(Magic("zip archive", b"PK" + kind, (0,)) for kind in (b"\x03\x04", b"\x05\x06", b"\x07\x08")),
    Magic("7z archive", b"7z\xbc\xaf\x27\x1c", (0,)),
    Magic("rar archive", b"Rar!\x1a\x07", (0,)),
    Magic("gzip data", b"\x1f\x8b\x08", (0,)),
    Magic("bzip2 data", b"1AY&SY", (4,)),
    Magic("xz data", b"\xfd7zXZ\0", (0,)),
    Magic("lzip data", b"LZIP", (0,)),
    Magic("lzop data", b"\x89LZO\0\r\n\x1a\n", (0,)),
    Magic("lz4 data", _le(0x184D2204), (0,)),
    Magic("zstd data", _le(0xFD2FB528), (0,)),
    *(Magic("dump archive", order(60012), (24,)) for order in (_le, _be)),
    Magic("xfsdump archive", b"xFSdump0", (0,)),
    Magic("btrfs send stream", b"btrfs-stream\0", (0,)),
    *(Magic("zfs send stream", order(0x2F5BACBAC, 8), (8,)) for order in (_le, _be)),
    *(Magic("kernel crash dump", name, (0,)) for name in (b"KDUMP   ", b"DISKDUMP")),
    Magic("ELF file", b"\x7fELF", (0,)),
    Magic("PostgreSQL dump", b"PGDMP", (0,)),
    Magic("SQLite database", b"SQLite format 3\0", (0,)),
    Magic("LMDB database", _le(0xBEEFC0DE), (16,)),
    Magic("Berkeley DB database", _le(0x00053162), (12,)),
)
"""Formats identified by bytes at fixed offsets."""


def _tail(size: int) -> Iterator[Magic]:
    """List formats with an offset that depends on the size."""
    sectors = size // 512
    end_of_md0 = (size & ~(64 * _KIB - 1)) - 64 * _KIB
    yield Magic("md RAID member (0.90)", _le(0xA92B4EFC), (end_of_md0,))
    yield Magic("md RAID member (0.90)", _be(0xA92B4EFC), (end_of_md0,))
    yield Magic("md RAID member (1.0)", _le(0xA92B4EFC), ((size & ~0xFFF) - 0x2000,))
    for magic in (0x8374026B, 0x8374026C, 0x8374026D):
        yield Magic("DRBD device", _be(magic), ((size & ~0xFFF) - 4096 + 60,))
    yield Magic("GPT partition table (backup)", b"EFI PART", (size - 512, size - 4096))
    yield Magic("nilfs2 filesystem", b"\x34\x34", (((size // 4096) - 1) * 4096 + 6,))
    yield Magic("Intel RAID member", b"Intel Raid ISM Cfg Sig. ", ((sectors - 2) * 512,))
    yield Magic("NVIDIA RAID member", b"NVIDIA", ((sectors - 2) * 512,))
    yield Magic("LSI RAID member", b"$XIDE$", ((sectors - 1) * 512,))
    for header in (1, 257):
        yield Magic("DDF RAID member", _be(0xDE11DE11), ((sectors - header) * 512,))
        yield Magic("DDF RAID member", _le(0xDE11DE11), ((sectors - header) * 512,))
    promise = (63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087)
    yield Magic("Promise RAID member", b"Promise Technology, Inc.", tuple((sectors - s) * 512 for s in promise))
    yield Magic("Windows dynamic disk", b"PRIVHEAD", ((sectors - 1) * 512,))
    yield Magic("VHD image", b"conectix", ((sectors - 1) * 512,))
    yield Magic("DMG image", b"koly", ((sectors - 1) * 512,))
    labels = [0, 1, size // _ZFS_LABEL_BYTES - 2, size // _ZFS_LABEL_BYTES - 1]
    uberblocks = [label * _ZFS_LABEL_BYTES + 128 * _KIB + slot * _KIB for label in labels for slot in range(128)]
    yield Magic("ZFS pool member", _le(0x00BAB10C, 8), tuple(uberblocks))
    yield Magic("ZFS pool member", _be(0x00BAB10C, 8), tuple(uberblocks))


Reader = Callable[[int, int], bytes]
"""(offset, length) -> bytes, fewer at the end."""


def find_signatures(read: Reader, size_bytes: int) -> list[str]:
    """Name everything recognised, in the order of the tables, each once."""
    found: dict[str, None] = {}
    for magic, offset in _places(size_bytes):
        if read(offset, len(magic.magic)) == magic.magic:
            found[magic.name] = None
    return list(found)


def signature_ranges(size_bytes: int) -> Iterator[tuple[int, int]]:
    """List the ranges of bytes in which formats are recognised, each with its end."""
    return ((offset, offset + len(magic.magic)) for magic, offset in _places(size_bytes))


def _places(size_bytes: int) -> Iterator[tuple[Magic, int]]:
    for magic in (*HEAD, *_tail(size_bytes)):
        for offset in magic.offsets:
            if 0 <= offset <= size_bytes - len(magic.magic):
                yield magic, offset
