//! Sparse histogram cells, sorted by row, series and bucket and encoded by the gaps between them.

use super::bytes::{Checked, Damage, Reader, write_section, write_varint};
use super::integers::{BitReader, BitWriter, Lengths};

/// More cells than 19,200 rows fill in a second; what a hostile file can make us allocate is bounded by it.
pub const MAX_CELLS: usize = 1 << 21;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub row: u32,
    pub series: u8,
    pub bucket: u16,
    pub count: u64,
}

impl Cell {
    fn key(&self) -> u64 {
        u64::from(self.row) << 24 | u64::from(self.series) << 16 | u64::from(self.bucket)
    }

    fn at(key: u64, count: u64) -> Checked<Self> {
        let [low, high, series, ..] = key.to_le_bytes();
        let row = u32::try_from(key >> 24).map_err(|_| Damage("no such row"))?;
        Ok(Self {
            row,
            series,
            bucket: u16::from_le_bytes([low, high]),
            count,
        })
    }
}

pub fn encode(mut cells: Vec<Cell>) -> Checked<Vec<u8>> {
    if cells.len() > MAX_CELLS {
        return Err(Damage("too many histogram cells"));
    }
    cells.sort_unstable();
    let keys = cells.iter().map(Cell::key);
    let previous = std::iter::once(0).chain(keys.clone());
    let gaps: Vec<u64> = keys
        .zip(previous)
        .map(|(key, before)| key - before)
        .collect();
    let counts: Vec<u64> = cells.iter().map(|cell| cell.count).collect();
    let mut out = Vec::new();
    write_varint(&mut out, cells.len() as u64);
    let mut bits = BitWriter::with_capacity(2 * cells.len());
    for list in [gaps, counts] {
        bits.list(&list, Lengths::of(&list).best().0);
    }
    write_section(&mut out, &bits.finish());
    Ok(out)
}

pub fn decode(bytes: &[u8]) -> Checked<Vec<Cell>> {
    let mut reader = Reader::new(bytes);
    let length = reader.count(MAX_CELLS)?;
    let bits = reader.section(BitReader::most_bytes(2 * length))?;
    reader.finish()?;
    let mut bits = BitReader::new(&bits);
    let (gaps, counts) = (bits.list(length)?, bits.list(length)?);
    bits.finish()?;
    let mut key = 0_u64;
    let cell = |(gap, count): (u64, u64)| {
        key = key.checked_add(gap).ok_or(Damage("no such row"))?;
        Cell::at(key, count)
    };
    gaps.into_iter().zip(counts).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_sorted() {
        let cell = |row, series, bucket, count| Cell {
            row,
            series,
            bucket,
            count,
        };
        let cells = vec![
            cell(3, 1, 900, 1),
            cell(0, 0, 5, u64::MAX),
            cell(3, 0, 65535, 2),
            cell(u32::MAX, 255, 0, 9),
        ];
        let mut sorted = cells.clone();
        sorted.sort_unstable();
        assert_eq!(decode(&encode(cells).unwrap()), Ok(sorted));
        assert_eq!(decode(&encode(Vec::new()).unwrap()), Ok(Vec::new()));
    }

    #[test]
    fn cut_or_absurd_strings_are_damage() {
        let bytes = encode(vec![
            Cell {
                row: 1,
                series: 0,
                bucket: 2,
                count: 3
            };
            9
        ])
        .unwrap();
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err());
        }
        assert!(decode(&[0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }
}
