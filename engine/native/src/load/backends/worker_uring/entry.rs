//! An I/O as the ring takes it.

use io_uring::{opcode, squeue, types};

use crate::load::counts::stats::Direction;
use crate::load::data::buffers::Buffer;
use crate::load::knobs::Settings;
use crate::load::pattern::Part;

#[inline]
pub(super) fn entry(
    file: types::Fd,
    part: &Part,
    buffer: Buffer,
    settings: &Settings,
    priority: u16,
) -> squeue::Entry {
    if part.is_fsync() {
        let flags = settings.flush.ring_flags();
        return opcode::Fsync::new(file).flags(flags).build();
    }
    let write_flags = settings.mode.write_flags();
    let (pointer, length, offset) = (buffer.pointer.as_ptr(), part.length, part.offset);
    match (part.direction, buffer.registered) {
        (Direction::Read, Some(index)) => opcode::ReadFixed::new(file, pointer, length, index)
            .offset(offset)
            .ioprio(priority)
            .build(),
        (Direction::Read, None) => opcode::Read::new(file, pointer, length)
            .offset(offset)
            .ioprio(priority)
            .build(),
        (Direction::Write, Some(index)) => opcode::WriteFixed::new(file, pointer, length, index)
            .offset(offset)
            .rw_flags(write_flags)
            .ioprio(priority)
            .build(),
        (Direction::Write, None) => opcode::Write::new(file, pointer, length)
            .offset(offset)
            .rw_flags(write_flags)
            .ioprio(priority)
            .build(),
    }
}
