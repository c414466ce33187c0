//! Histogram cells of a closed epoch in two or three bytes each: runs of many short epochs must not eat memory.

use super::histogram::Counts;

/// Steps between buckets and counts, each as a base-128 number with its low digits first.
pub struct PackedCells(Box<[u8]>);

impl PackedCells {
    pub fn pack(counts: &Counts) -> Self {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (bucket, count) in counts.cells() {
            push(&mut bytes, u64::from(bucket - last));
            push(&mut bytes, count);
            last = bucket;
        }
        Self(bytes.into_boxed_slice())
    }

    pub fn cells(&self) -> Vec<(u16, u64)> {
        let (mut bytes, mut bucket, mut cells) = (self.0.iter(), 0, Vec::new());
        while let (Some(step), Some(count)) = (pull(&mut bytes), pull(&mut bytes)) {
            bucket += step;
            cells.extend(u16::try_from(bucket).map(|bucket| (bucket, count)));
        }
        cells
    }
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn pull<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.next()?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::counts::histogram::Histogram;

    #[test]
    fn cells_come_back_as_they_were() {
        let histogram = Histogram::default();
        for (latency_ns, times) in [
            (0, 1),
            (1000, 127),
            (1001, 128),
            (5_000_000, 20_000),
            (u64::MAX, 3),
        ] {
            (0..times).for_each(|_| histogram.record(latency_ns));
        }
        let mut counts = Counts::default();
        counts.add(&histogram);
        assert_eq!(
            PackedCells::pack(&counts).cells(),
            counts.cells().collect::<Vec<_>>()
        );
        assert!(PackedCells::pack(&Counts::default()).cells().is_empty());
    }
}
