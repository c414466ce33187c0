//! Sequential order: one stream through the space, or several that take turns, each in a slice of its own or all with
//! the same distance between their starts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::load::counts::stats::Direction;

/// How many streams there are, where they begin and how they go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// Number of streams, at least 1.
    pub count: usize,
    /// Distance between the starts of neighbours, which may overlap; None: each has its own slice.
    pub step_bytes: Option<u64>,
    /// Left out after each block, or gone back if negative.
    pub jump_bytes: i64,
    /// Whether reads and writes each have a position of their own in every stream.
    pub separate: bool,
}

impl StreamPlan {
    /// The length of the shortest stream.
    pub fn shortest(&self, space_bytes: u64) -> u64 {
        let count = self.count as u64;
        match self.step_bytes {
            Some(step) => space_bytes.saturating_sub(step.saturating_mul(count - 1)),
            None => space_bytes / count,
        }
    }

    /// Begin and end of a stream.
    fn bounds(&self, stream: u64, space_bytes: u64) -> (u64, u64) {
        let length = self.shortest(space_bytes);
        match self.step_bytes {
            Some(step) => (stream * step, stream * step + length),
            None if stream + 1 == self.count as u64 => (stream * length, space_bytes),
            None => (stream * length, (stream + 1) * length),
        }
    }
}

/// Cursors of one address space, shared by all workers.
pub struct Streams {
    plan: StreamPlan,
    turn: AtomicU64,
    cursors: Box<[AtomicU64]>,
}

impl Streams {
    pub fn new(plan: StreamPlan) -> Self {
        Self {
            plan,
            turn: AtomicU64::new(0),
            cursors: (0..2 * plan.count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Offset of the next block of the next stream in turn, wrapping at the end of its part of the space.
    ///
    /// A slice holds at least one aligned block; with several streams that needs the size of two.
    #[inline]
    pub fn next(&self, direction: Direction, space_bytes: u64, block_bytes: u64) -> u64 {
        let streams = self.plan.count as u64;
        let stream = if streams == 1 {
            0
        } else {
            self.turn.fetch_add(1, Relaxed) % streams
        };
        let own = self.plan.separate && direction == Direction::Write;
        let first = if own { self.plan.count } else { 0 };
        let cursor = &self.cursors[first + usize::try_from(stream).unwrap_or(0)];
        let (begin, end) = self.plan.bounds(stream, space_bytes);
        match self.plan.jump_bytes {
            0 => advance(cursor, begin, end, block_bytes),
            jump => leap(cursor, begin, end, block_bytes, jump),
        }
    }
}

/// Takes the next block between `begin` and `end`: a multiple of its own size.
fn advance(cursor: &AtomicU64, begin: u64, end: u64, block_bytes: u64) -> u64 {
    let aligned = |position: u64| {
        let offset = position.max(begin).next_multiple_of(block_bytes);
        if offset + block_bytes > end {
            begin.next_multiple_of(block_bytes)
        } else {
            offset
        }
    };
    let taken = cursor.fetch_update(Relaxed, Relaxed, |position| {
        Some(aligned(position) + block_bytes)
    });
    aligned(taken.unwrap_or_else(|position| position))
}

/// Takes the next block with a jump between blocks, and starts over outside `begin` to `end`: forwards from the begin,
/// backwards from where the jump leads from the end (`get_next_seq_offset` of fio). The cursor is where the last block
/// ended; 0 is the start.
fn leap(cursor: &AtomicU64, begin: u64, end: u64, block_bytes: u64, jump: i64) -> u64 {
    let length = end - begin;
    let next = |ended: u64| {
        let inside = ended.saturating_sub(begin);
        if inside == 0 {
            return begin;
        }
        let fits = |offset: &u64| offset + block_bytes <= length;
        let over = || {
            if jump > 0 {
                0
            } else {
                length.checked_add_signed(jump).filter(fits).unwrap_or(0)
            }
        };
        let offset = inside.checked_add_signed(jump).filter(fits);
        begin + offset.unwrap_or_else(over)
    };
    let taken = cursor.fetch_update(Relaxed, Relaxed, |ended| Some(next(ended) + block_bytes));
    next(taken.unwrap_or_else(|ended| ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize) -> Streams {
        planned(count, None, 0)
    }

    fn planned(count: usize, step_bytes: Option<u64>, jump_bytes: i64) -> Streams {
        Streams::new(StreamPlan {
            count,
            step_bytes,
            jump_bytes,
            separate: false,
        })
    }

    impl Streams {
        fn read(&self, space_bytes: u64, block_bytes: u64) -> u64 {
            self.next(Direction::Read, space_bytes, block_bytes)
        }
    }

    #[test]
    fn reads_and_writes_may_each_have_a_position() {
        let plan = StreamPlan {
            count: 1,
            step_bytes: None,
            jump_bytes: 0,
            separate: true,
        };
        let streams = Streams::new(plan);
        let directions = [Direction::Read, Direction::Write, Direction::Write];
        let offsets = directions.map(|direction| streams.next(direction, 8 * 4096, 4096));
        assert_eq!(offsets, [0, 0, 4096]);
        assert_eq!(streams.read(8 * 4096, 4096), 4096);
    }

    fn blocks(streams: &Streams, count: usize, space: u64) -> Vec<u64> {
        (0..count)
            .map(|_| streams.read(space * 4096, 4096) / 4096)
            .collect()
    }

    #[test]
    fn streams_with_a_step_overlap_and_are_of_one_length() {
        let same = planned(2, Some(0), 0);
        assert_eq!(blocks(&same, 8, 3), [0, 0, 1, 1, 2, 2, 0, 0]);
        let apart = planned(2, Some(2 * 4096), 0);
        assert_eq!(blocks(&apart, 8, 5), [0, 2, 1, 3, 2, 4, 0, 2]);
    }

    #[test]
    fn a_jump_leaves_blocks_out_and_starts_over() {
        assert_eq!(blocks(&planned(1, None, 4096), 5, 6), [0, 2, 4, 0, 2]);
    }

    #[test]
    fn a_jump_back_goes_backwards_from_the_end() {
        let streams = planned(1, None, -8192);
        assert_eq!(blocks(&streams, 9, 5), [0, 3, 2, 1, 0, 3, 2, 1, 0]);
    }

    #[test]
    fn a_stream_visits_every_block_in_order_and_wraps() {
        let streams = of(1);
        let offsets: Vec<u64> = (0..7).map(|_| streams.read(3 * 4096, 4096)).collect();
        assert_eq!(offsets, [0, 4096, 8192, 0, 4096, 8192, 0]);
    }

    #[test]
    fn a_mix_keeps_every_block_aligned_and_inside() {
        let streams = of(1);
        for block in [4096, 65536, 12288, 4096, 65536, 65536, 12288] {
            let offset = streams.read(200_000, block);
            assert_eq!(offset % block, 0);
            assert!(offset + block <= 200_000);
        }
    }

    #[test]
    fn several_streams_take_turns_in_slices_of_their_own() {
        let streams = of(3);
        let offsets: Vec<u64> = (0..9)
            .map(|_| streams.read(8 * 4096, 4096) / 4096)
            .collect();
        // Slices are 2.67 blocks: 0..2.67, 2.67..5.33, 5.33..8; blocks that cross an edge are left out.
        assert_eq!(offsets, [0, 3, 6, 1, 4, 7, 0, 3, 6]);
    }

    #[test]
    fn a_space_that_changed_is_entered_at_the_start_of_the_slice() {
        let streams = of(2);
        for _ in 0..20 {
            streams.read(1 << 20, 4096);
        }
        for _ in 0..8 {
            assert!(streams.read(64 * 1024, 4096) + 4096 <= 64 * 1024);
        }
    }
}
