"""Options of a fio job that are not driven: which of them change the load, and which do not.

Names are those of fio(1). What is in neither table is refused like what changes the load.
"""

from __future__ import annotations

import difflib
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.job.formats.fio_sections import Option
from engine.job.formats.text_file import quoted
from engine.text import safe_text


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNHEARD = frozenset({"name", "description"})
"""Words for people."""

WITHOUT_EFFECT = _names("""
    group_reporting thread threads per_job_logs disk_util significant_figures unified_rw_reporting unit_base
    write_bw_log write_lat_log write_iops_log write_hist_log bwavgtime iopsavgtime log_avg_msec log_hist_msec
    log_hist_coarseness log_max_value log_window_value log_offset log_prio log_entries log_unix_epoch
    log_alternate_epoch log_alternate_epoch_clock_id log_compression log_compression_cpus log_store_compressed
    block_error_percentiles clat_percentiles lat_percentiles slat_percentiles percentile_list
    gtod_reduce gtod_cpu clocksource disable_lat disable_clat disable_slat disable_bw disable_bw_measurement
    randrepeat allrandrepeat softrandommap
    fallocate create_serialize create_fsync create_on_open
    unique_filename unlink overwrite allow_mounted_write
    nice cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy
    mem_align iomem_align hugepage-size
    fixedbufs registerfiles nonvectored force_async io_submit_mode sqthread_poll sqthread_poll_cpu userspace_reap
    iodepth_batch iodepth_batch_submit iodepth_batch_complete_max
    continue_on_error ignore_error error_dump flow_watermark
    rwmixcycle thinktime_spin verify_fatal verify_dump verify_async verify_async_cpus verify_interval verify_offset
    verify_pattern_interval verify_backlog_batch verifysort verifysort_nr
    verify_state_save verify_header_seed serialize_overlap experimental_verify
    refill_buffers scramble_buffers
""")
"""Reporting, placement and memory of fio itself, and what lunscope does in any case: they leave the load as it is."""

_OF_WRITTEN_DATA = _names("zero_buffers buffer_pattern")
_OF_ITS_SIZE_WHEN_STORED = _names("""
    buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_global
    dedupe_working_set_percentage verify_pattern
""")
_OFF_AT_ZERO = _names("""
    thinktime_iotime verify_only verify_state_load pre_read hipri
    zero_buffers file_append
    max_latency atomic create_only iodepth_low
""")
_NEUTRAL: dict[str, frozenset[str | None]] = {
    **{name: frozenset({"0"}) for name in _OFF_AT_ZERO},
    "percentage_random": frozenset({"100"}),
    "rw_sequencer": frozenset({"sequential"}),
    "stats": frozenset({"1", None}),
    "zonemode": frozenset({"none"}),
}
"""Values with which an option has no effect."""

_FIXES = {
    "stats": "its figures would be left out of the sums: take it out, each section has figures of its own",
    "opendir": "name the files with filename",
}
_OTHERWISE = "changes the load and is not driven here: take it out"


class OtherOptions(Struct, frozen=True):
    """What of a job decides whether one of its options has an effect."""

    targets: Sequence[str]
    """Files and devices by name; none where it makes its files."""
    files: int
    """Number of files on which each clone works."""
    depth: int
    """What each clone keeps outstanding."""
    loops: int
    writes: bool
    direct: bool
    verify: bool = False

    @property
    def has_own_data(self) -> bool:
        """Whether what it reads or writes is made here."""
        return self.writes or not self.targets


def _files_in_order(option: Option, job: OtherOptions) -> str:
    in_turn = option.text.partition(":")[0] in ("roundrobin", "random")
    return "" if in_turn or job.files == 1 else "only all files in turn are driven: use roundrobin"


def _open_files(option: Option, job: OtherOptions) -> str:
    fewer = option.text not in ("0", str(job.files)) and job.files > 1
    return "all files are used at once, of which this leaves some out: take it out, or use sections" if fewer else ""


def _made_anew(option: Option, job: OtherOptions) -> str:
    return (
        ""
        if option.value == "0" or job.loops < 2 or not job.writes
        else "each loop would write a new file: use loops=1"
    )


def _no_new_file(option: Option, job: OtherOptions) -> str:
    missing = [name for name in job.targets if option.value == "0" and not Path(name).exists()]
    return f"{safe_text(missing[0])} does not exist and may not be made: make it, or take this out" if missing else ""


def _locked_memory(option: Option, job: OtherOptions) -> str:
    return "" if option.value == "0" or job.direct else "takes memory from the page cache: use direct=1, or take it out"


def _buffer_memory(option: Option, _: OtherOptions) -> str:
    kind, _colon, file = option.text.partition(":")
    plain = kind in ("malloc", "shm", "shmhuge", "mmaphuge") or (kind in ("mmap", "mmapshared") and not file)
    return "" if plain else f"buffers in {quoted(option.text)} are not driven: take it out"


def _draining(option: Option, job: OtherOptions) -> str:
    drains = not option.text.isdecimal() or int(option.text) > max(1, job.depth // 2)
    return "the queue drains before it is filled again, here it is kept full: take it out" if drains else ""


def _flushed_at_end(option: Option, job: OtherOptions) -> str:
    measured = job.writes and not job.direct
    return (
        "writes would count without their flush: use fsync=N, or sync=dsync" if option.value != "0" and measured else ""
    )


def _filled_up(option: Option, job: OtherOptions) -> str:
    """Say that a file is not made as large as its filesystem allows; a device is written to its end in any case.

    What is verified is about the bytes that are there: a file is written to its end then, too, which a note says.
    """
    is_bounded = bool(job.targets) and all(_has_end(name, is_file=job.verify) for name in job.targets)
    return "" if option.value == "0" or is_bounded else "would fill the filesystem: give the size with size"


def _has_end(name: str, *, is_file: bool) -> bool:
    try:
        status = Path(name).stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISBLK(status.st_mode) or (is_file and stat.S_ISREG(status.st_mode) and status.st_size > 0)


def _written_data(_: Option, job: OtherOptions) -> str:
    return (
        "changes the load, which writes data that no storage can make smaller: take it out" if job.has_own_data else ""
    )


def _makes_smaller(option: Option, job: OtherOptions) -> bool:
    """Whether fio would write data that some storage stores in less space; a pattern of zeros is one of them."""
    return job.verify if option.name == "verify_pattern" else option.value != "0"


def notes_of(options: Sequence[Option], job: OtherOptions) -> Iterator[str]:
    """Say what differs from fio where an option is driven in part only."""
    given = {option.name: option for option in options}
    smaller = [name for name in sorted(_OF_ITS_SIZE_WHEN_STORED & given.keys()) if _makes_smaller(given[name], job)]
    if smaller and job.has_own_data:
        yield (
            f"{', '.join(smaller)}: the data written cannot be made smaller by any storage: figures of storage that "
            "compresses or deduplicates are others than with fio"
        )
    filled = [name for name in ("fill_device", "fill_fs") if name in given and given[name].value != "0"]
    if filled and any(Path(name).is_file() for name in job.targets):
        yield f"{filled[0]}: a file is written to its end, in fio until its filesystem is full"


_CHOOSES: dict[str, Callable[[Option, OtherOptions], str]] = {
    "file_service_type": _files_in_order,
    "openfiles": _open_files,
    "unlink_each_loop": _made_anew,
    "allow_file_create": _no_new_file,
    "lockmem": _locked_memory,
    "mem": _buffer_memory,
    "iomem": _buffer_memory,
    "iodepth_batch_complete": _draining,
    "iodepth_batch_complete_min": _draining,
    **dict.fromkeys(("end_fsync", "fsync_on_close"), _flushed_at_end),
    **dict.fromkeys(("fill_device", "fill_fs"), _filled_up),
    **dict.fromkeys(_OF_WRITTEN_DATA, _written_data),
    **dict.fromkeys(_OF_ITS_SIZE_WHEN_STORED, lambda _option, _job: ""),
}
"""Options that choose what is measured beside some others: each says how, or nothing where it does not."""


def judge_left_over(options: Sequence[Option], known: Sequence[str], job: OtherOptions) -> Iterator[str]:
    """Name every option that was not read: yields those without an effect on the load.

    Args:
        options: what is left.
        known: names that are driven, to guess what a misspelt one was meant to be.
        job: what they stand beside.

    Raises:
        UsageError: an option changes the load.
    """
    for option in options:
        if option.name in _UNHEARD or option.value in _NEUTRAL.get(option.name, ()):
            continue
        changes = _CHOOSES[option.name](option, job) if option.name in _CHOOSES else None
        if changes == "" or option.name in WITHOUT_EFFECT:
            yield option.name
        else:
            raise option.error(changes or _FIXES.get(option.name) or _guess(option.name, known))


def _guess(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, [*known, *WITHOUT_EFFECT, *_CHOOSES], n=1, cutoff=0.8)
    return f"{_OTHERWISE}; did you mean {quoted(near[0])}?" if near else _OTHERWISE
