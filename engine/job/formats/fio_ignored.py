"""Options of a fio job that are not driven: which of them change the load, and which do not.

Names are those of fio(1). What is in neither table is refused like what changes the load.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from engine.job.formats.fio_sections import Option
from engine.job.formats.text_file import quoted


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNHEARD = frozenset({"name", "description"})
"""Words for people."""

WITHOUT_EFFECT = _names("""
    group_reporting new_group thread stats per_job_logs disk_util significant_figures unified_rw_reporting unit_base
    write_bw_log write_lat_log write_iops_log write_hist_log bwavgtime iopsavgtime log_avg_msec log_hist_msec
    log_hist_coarseness log_max_value log_window_value log_offset log_prio log_entries log_unix_epoch
    log_alternate_epoch log_alternate_epoch_clock_id log_compression log_compression_cpus log_store_compressed
    block_error_percentiles clat_percentiles lat_percentiles slat_percentiles percentile_list
    gtod_reduce gtod_cpu clocksource disable_lat disable_clat disable_slat disable_bw disable_bw_measurement
    randrepeat allrandrepeat softrandommap random_generator
    fallocate fadvise_hint create_serialize create_fsync create_on_open allow_file_create file_service_type openfiles
    filename_format unique_filename unlink unlink_each_loop overwrite allow_mounted_write
    nice prio prioclass cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy
    mem iomem mem_align iomem_align hugepage-size lockmem
    fixedbufs registerfiles nonvectored force_async sqthread_poll sqthread_poll_cpu userspace_reap
    iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min iodepth_batch_complete_max
    continue_on_error ignore_error error_dump startdelay flow_watermark
    rwmixcycle thinktime_spin verify_fatal verify_dump verify_async verify_async_cpus verify_interval verify_offset
    verify_pattern verify_pattern_interval verify_backlog verify_backlog_batch verifysort verifysort_nr
    verify_state_save verify_header_seed serialize_overlap experimental_verify
    refill_buffers scramble_buffers
""")
"""Reporting, placement and memory of fio itself, and what lunscope does in any case: they leave the load as it is."""

_OF_WRITTEN_DATA = _names(
    "zero_buffers buffer_pattern buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode"
)
_OFF_AT_ZERO = _names("""
    thinktime_iotime verify_only verify_state_load end_fsync fsync_on_close pre_read hipri
    zero_buffers buffer_compress_percentage dedupe_percentage file_append
    fill_device fill_fs max_latency atomic create_only iodepth_low
""")
_NEUTRAL: dict[str, frozenset[str | None]] = {
    **{name: frozenset({"0"}) for name in _OFF_AT_ZERO},
    "io_submit_mode": frozenset({"inline"}),
    "percentage_random": frozenset({"100"}),
    "rw_sequencer": frozenset({"sequential"}),
    "zonemode": frozenset({"none"}),
}
"""Values with which an option has no effect."""

_FIXES = {
    "opendir": "name the files with filename",
    "end_fsync": "writes would count without their flush: use fsync=N, or sync=dsync",
    "fsync_on_close": "writes would count without their flush: use fsync=N, or sync=dsync",
}
_OTHERWISE = "changes the load and is not driven here: take it out"


def judge_left_over(options: Sequence[Option], known: Sequence[str], *, writes: bool) -> Iterator[str]:
    """Name every option that was not read: yields those without an effect on the load.

    Args:
        options: what is left.
        known: names that are driven, to guess what a misspelt one was meant to be.
        writes: whether the job writes, so that the data written matter.

    Raises:
        UsageError: an option changes the load.
    """
    for option in options:
        if option.name in _UNHEARD or option.value in _NEUTRAL.get(option.name, ()):
            continue
        if option.name in WITHOUT_EFFECT or (option.name in _OF_WRITTEN_DATA and not writes):
            yield option.name
        else:
            raise option.error(_FIXES.get(option.name) or _guess(option.name, known))


def _guess(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, [*known, *WITHOUT_EFFECT], n=1, cutoff=0.8)
    return f"{_OTHERWISE}; did you mean {quoted(near[0])}?" if near else _OTHERWISE
