"""Caches above disks: ARC, bcache, dm-cache, dm-writecache, page cache."""
