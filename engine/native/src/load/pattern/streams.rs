//! Sequential order: one stream through the space, or several that each have their own slice of it and take turns.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Cursors of one address space, shared by all workers.
pub struct Streams {
    turn: AtomicU64,
    cursors: Box<[AtomicU64]>,
}

impl Streams {
    /// `count` is at least 1.
    pub fn new(count: usize) -> Self {
        Self {
            turn: AtomicU64::new(0),
            cursors: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Offset of the next block of the next stream in turn, wrapping at the end of its slice.
    ///
    /// A slice holds at least one aligned block; with several streams that needs the size of two.
    #[inline]
    pub fn next(&self, space_bytes: u64, block_bytes: u64) -> u64 {
        let streams = self.cursors.len() as u64;
        if streams == 1 {
            return advance(&self.cursors[0], 0, space_bytes, block_bytes);
        }
        let stream = self.turn.fetch_add(1, Relaxed) % streams;
        let slice_bytes = space_bytes / streams;
        let cursor = &self.cursors[usize::try_from(stream).unwrap_or(0)];
        let end = if stream + 1 == streams {
            space_bytes
        } else {
            (stream + 1) * slice_bytes
        };
        advance(cursor, stream * slice_bytes, end, block_bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_visits_every_block_in_order_and_wraps() {
        let streams = Streams::new(1);
        let offsets: Vec<u64> = (0..7).map(|_| streams.next(3 * 4096, 4096)).collect();
        assert_eq!(offsets, [0, 4096, 8192, 0, 4096, 8192, 0]);
    }

    #[test]
    fn a_mix_keeps_every_block_aligned_and_inside() {
        let streams = Streams::new(1);
        for block in [4096, 65536, 12288, 4096, 65536, 65536, 12288] {
            let offset = streams.next(200_000, block);
            assert_eq!(offset % block, 0);
            assert!(offset + block <= 200_000);
        }
    }

    #[test]
    fn several_streams_take_turns_in_slices_of_their_own() {
        let streams = Streams::new(3);
        let offsets: Vec<u64> = (0..9)
            .map(|_| streams.next(8 * 4096, 4096) / 4096)
            .collect();
        // Slices are 2.67 blocks: 0..2.67, 2.67..5.33, 5.33..8; blocks that cross an edge are left out.
        assert_eq!(offsets, [0, 3, 6, 1, 4, 7, 0, 3, 6]);
    }

    #[test]
    fn a_space_that_changed_is_entered_at_the_start_of_the_slice() {
        let streams = Streams::new(2);
        for _ in 0..20 {
            streams.next(1 << 20, 4096);
        }
        for _ in 0..8 {
            assert!(streams.next(64 * 1024, 4096) + 4096 <= 64 * 1024);
        }
    }
}
