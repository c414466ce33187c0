//! One logical address space over several targets, as RAID 0 and RAID 10 lay it out: columns of one or more copies.

/// A run of bytes on one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub column: usize,
    pub offset: u64,
    pub length: u64,
}

/// `rows` rows of one unit on each of `width` columns; a column is one target, or several with the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    width: u64,
    copies: usize,
    unit_bytes: u64,
    rows: u64,
}

impl Layout {
    /// The largest layout on columns of `copies` targets each; the smallest of all targets has `size_bytes`.
    pub fn new(columns: usize, copies: usize, unit_bytes: u64, size_bytes: u64) -> Self {
        Self {
            width: columns as u64,
            copies,
            unit_bytes,
            rows: size_bytes / unit_bytes,
        }
    }

    pub fn copies(&self) -> usize {
        self.copies
    }

    /// Targets that hold the same data; neighbours in the list of targets.
    pub fn targets(&self, column: usize) -> std::ops::Range<usize> {
        column * self.copies..(column + 1) * self.copies
    }

    pub fn capacity_bytes(&self) -> u64 {
        self.width * self.unit_bytes * self.rows
    }

    /// The most bytes one column gets of a logical I/O of `length` bytes.
    pub fn largest_part_bytes(&self, length: u64) -> u64 {
        let units = length.div_ceil(self.unit_bytes) + 1;
        (units.div_ceil(self.width) * self.unit_bytes).min(length)
    }

    /// The location of a logical range: one extent per column touched, as its units there are contiguous.
    pub fn extents(&self, start: u64, length: u64) -> impl Iterator<Item = Extent> + use<> {
        let (layout, last_byte) = (*self, start + length - 1);
        let (first_unit, last_unit) = (start / layout.unit_bytes, last_byte / layout.unit_bytes);
        let touched = layout.width.min(last_unit - first_unit + 1);
        (first_unit..first_unit + touched).map(move |unit| {
            let final_unit = unit + (last_unit - unit) / layout.width * layout.width;
            let begin = layout.row_start(unit)
                + if unit == first_unit {
                    start % layout.unit_bytes
                } else {
                    0
                };
            let tail = if final_unit == last_unit {
                last_byte % layout.unit_bytes + 1
            } else {
                layout.unit_bytes
            };
            let end = layout.row_start(final_unit) + tail;
            Extent {
                column: layout.column_of(unit),
                offset: begin,
                length: end - begin,
            }
        })
    }

    fn row_start(&self, unit: u64) -> u64 {
        unit / self.width * self.unit_bytes
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "below the number of columns"
    )]
    fn column_of(&self, unit: u64) -> usize {
        (unit % self.width) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::pattern::Rng;

    /// The location of one logical byte, straight from the definition.
    fn locate(layout: &Layout, byte: u64) -> (usize, u64) {
        let unit = byte / layout.unit_bytes;
        let target = usize::try_from(unit % layout.width).unwrap();
        (
            target,
            unit / layout.width * layout.unit_bytes + byte % layout.unit_bytes,
        )
    }

    #[test]
    fn extents_cover_exactly_the_bytes_of_the_range() {
        let mut rng = Rng::new(3, 0, 0);
        for _ in 0..2000 {
            let layout = Layout::new(
                usize::try_from(1 + rng.below(5)).unwrap(),
                1,
                8,
                8 * (1 + rng.below(9)),
            );
            let start = rng.below(layout.capacity_bytes());
            let length = 1 + rng.below(layout.capacity_bytes() - start);
            let mut expected: Vec<_> = (start..start + length)
                .map(|byte| locate(&layout, byte))
                .collect();
            let extents: Vec<Extent> = layout.extents(start, length).collect();
            let mut covered: Vec<_> = extents
                .iter()
                .flat_map(|part| {
                    (part.offset..part.offset + part.length).map(|byte| (part.column, byte))
                })
                .collect();
            expected.sort_unstable();
            covered.sort_unstable();
            assert_eq!(covered, expected, "{layout:?} {start} {length}");
            assert!(
                extents
                    .iter()
                    .all(|part| part.length <= layout.largest_part_bytes(length))
            );
        }
    }

    #[test]
    fn copies_are_neighbours() {
        let layout = Layout::new(2, 3, 64, 1024);
        assert_eq!([layout.targets(0), layout.targets(1)], [0..3, 3..6]);
        assert_eq!(layout.capacity_bytes(), 2 * 1024);
    }

    #[test]
    fn units_on_one_target_merge_into_one_part() {
        let parts: Vec<Extent> = Layout::new(2, 1, 64, 1024).extents(0, 256).collect();
        let expected = [
            Extent {
                column: 0,
                offset: 0,
                length: 128,
            },
            Extent {
                column: 1,
                offset: 0,
                length: 128,
            },
        ];
        assert_eq!(parts, expected);
    }
}
