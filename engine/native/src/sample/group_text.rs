//! Parsers of the I/O files of a control group; words and lines in an unknown format are passed over.

use std::collections::HashMap;

/// A figure that is not reported, as in the tables of the collectors.
pub const MISSING: u64 = u64::MAX;

/// Columns of the counter files, in the order of the raw table `cgroup`.
pub const COLUMNS: usize = 11;
const VRATE: usize = 10;
/// Digits with which any number fits 64 bits.
const SAFE_DIGITS: usize = 19;
const KEYS: [&[u8]; VRATE] = [
    b"rbytes",
    b"wbytes",
    b"rios",
    b"wios",
    b"dbytes",
    b"dios",
    b"cost.usage",
    b"cost.wait",
    b"cost.indebt",
    b"cost.indelay",
];

/// Major and minor of a device.
pub type Device = (u64, u64);

/// Counters of one group: a row for each device.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub devices: Vec<Device>,
    pub rows: Vec<[u64; COLUMNS]>,
}

/// Reads `io.stat`: "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6 cost.usage=7 ...", a line for each device.
///
/// A device without any number after it has no row: Linux 5.13 to 5.19 print it without an end of line before the
/// next (`blkcg_print_one_stat`), so that numbers belong to the last device of their line, or to none if that has no
/// number, as `(unknown)`.
pub fn io_stat(text: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let mut cursor = Cursor { text, at: 0 };
    while cursor.at < text.len() {
        if let Some(device) = cursor.last_device() {
            let row = cursor.row();
            if row.iter().any(|&value| value != MISSING) {
                counts.devices.push(device);
                counts.rows.push(row);
            }
        }
        cursor.skip_until(b"\n");
        cursor.at += 1;
    }
    counts
}

/// Passes over a text once: there may be hundreds of groups with dozens of devices each.
struct Cursor<'text> {
    text: &'text [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b'\n')
    }

    fn is_word_over(&self) -> bool {
        matches!(self.peek(), b' ' | b'\n')
    }

    fn skip_until(&mut self, ends: &[u8]) {
        while self.at < self.text.len() && !ends.contains(&self.text[self.at]) {
            self.at += 1;
        }
    }

    /// The number here; None where there is none, or none that 64 bits hold.
    fn number(&mut self) -> Option<u64> {
        let (start, mut sum) = (self.at, 0_u64);
        while self.peek().is_ascii_digit() {
            sum = sum
                .wrapping_mul(10)
                .wrapping_add(u64::from(self.peek() - b'0'));
            self.at += 1;
        }
        match self.at - start {
            0 => None,
            1..=SAFE_DIGITS => Some(sum),
            _ => number(&self.text[start..self.at]),
        }
    }

    fn device(&mut self) -> Option<Device> {
        let major = self.number()?;
        if self.peek() != b':' {
            return None;
        }
        self.at += 1;
        let minor = self.number()?;
        self.is_word_over().then_some((major, minor))
    }

    /// The last word that is no value, before the values; None where it is no device.
    fn last_device(&mut self) -> Option<Device> {
        let mut last = None;
        loop {
            let start = self.at;
            let device = self.device();
            self.skip_until(b" \n");
            if self.text[start..self.at].contains(&b'=') {
                self.at = start;
                return last;
            }
            last = device;
            while self.peek() == b' ' {
                self.at += 1;
            }
            if self.peek() == b'\n' {
                return last;
            }
        }
    }

    /// The values up to the end of the line.
    fn row(&mut self) -> [u64; COLUMNS] {
        let mut row = [MISSING; COLUMNS];
        let mut next = 0;
        loop {
            while self.peek() == b' ' {
                self.at += 1;
            }
            if self.peek() == b'\n' {
                return row;
            }
            next = self.word(&mut row, next);
        }
    }

    /// Puts the value of a word into its column, which most likely is the next one; the column after it.
    fn word(&mut self, row: &mut [u64; COLUMNS], next: usize) -> usize {
        let start = self.at;
        if let Some(key) = KEYS.get(next) {
            let after = start + key.len();
            if self.text[start..].starts_with(key) && self.text.get(after) == Some(&b'=') {
                self.at = after + 1;
                let value = self.number();
                if self.is_word_over() {
                    row[next] = value.unwrap_or(MISSING);
                    return next + 1;
                }
            }
        }
        self.skip_until(b" \n");
        put(row, &self.text[start..self.at]).map_or(next, |column| column + 1)
    }
}

/// Puts the value of any word into its column, which is returned.
fn put(row: &mut [u64; COLUMNS], word: &[u8]) -> Option<usize> {
    let (key, value) = split_once(word, b'=')?;
    let (column, value) = if key == b"cost.vrate" {
        (VRATE, hundredths(value))
    } else {
        let column = KEYS.iter().position(|&known| known == key)?;
        (column, number(value))
    };
    row[column] = value.unwrap_or(MISSING);
    (column != VRATE).then_some(column)
}

/// A percentage with two decimals, as `blk-iocost.c` prints it.
fn hundredths(text: &[u8]) -> Option<u64> {
    let (whole, decimals) = split_once(text, b'.')?;
    let part = (decimals.len() == 2).then(|| number(decimals))??;
    number(whole)?.checked_mul(100)?.checked_add(part)
}

/// Reads `blkio.throttle.io_service_bytes*` and `io_serviced*` of cgroup v1: "8:16 Read 4096", a line for each kind.
pub fn blkio(service_bytes: &[u8], serviced: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let mut places = HashMap::new();
    for (text, columns) in [(service_bytes, [0, 1, 4]), (serviced, [2, 3, 5])] {
        let mut at = 0;
        for line in text.split(|&byte| byte == b'\n') {
            let Some((device, kind, value)) = blkio_line(line) else {
                continue;
            };
            // Lines of a device follow each other, and devices have the same order in both files.
            let near = [at, at + 1];
            let known = near
                .into_iter()
                .find(|&row| counts.devices.get(row) == Some(&device));
            at = known.unwrap_or_else(|| {
                *places.entry(device).or_insert_with(|| {
                    counts.devices.push(device);
                    counts.rows.push([MISSING; COLUMNS]);
                    counts.devices.len() - 1
                })
            });
            counts.rows[at][columns[kind]] = value;
        }
    }
    counts
}

fn blkio_line(line: &[u8]) -> Option<(Device, usize, u64)> {
    let (numbers, rest) = split_once(line, b' ')?;
    let (kind, value) = split_once(rest, b' ')?;
    let kind = [b"Read".as_slice(), b"Write", b"Discard"]
        .iter()
        .position(|&known| known == kind)?;
    Some((device(numbers)?, kind, number(value).unwrap_or(MISSING)))
}

/// Reads `io.pressure`: microseconds in which some and all tasks waited, MISSING if not reported.
///
/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", likewise "full" (Documentation/accounting/psi.rst).
pub fn pressure(text: &[u8]) -> [u64; 2] {
    let mut totals = [MISSING; 2];
    for line in text.split(|&byte| byte == b'\n') {
        let Some(share) = [b"some ", b"full "]
            .iter()
            .position(|&name| line.starts_with(name))
        else {
            continue;
        };
        let total = line
            .rsplit(|&byte| byte == b' ')
            .next()
            .and_then(|word| word.strip_prefix(b"total="));
        totals[share] = total.and_then(number).unwrap_or(MISSING);
    }
    totals
}

fn device(text: &[u8]) -> Option<Device> {
    let (major, minor) = split_once(text, b':')?;
    Some((number(major)?, number(minor)?))
}

fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// A whole number; None for anything else, and for what 64 bits do not hold.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        if !byte.is_ascii_digit() {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::{MISSING, io_stat, number};

    #[test]
    fn numbers_are_whole_and_fit_64_bits() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"0000000000000000000000017"), Some(17));
        for text in [
            b"".as_slice(),
            b"-1",
            b"1.5",
            b"max",
            b"18446744073709551616",
        ] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }

    #[test]
    fn values_belong_to_the_last_device_of_their_line() {
        let counts = io_stat(
            b"8:0 rbytes=1 rios=2\n7:7 7:6 7:5 254:0 rbytes=3 rios=4\n7:3 (unknown) rbytes=5\n252:0 \n\
              (unknown) rbytes=6\n7:1 (unknown) 7:2 rbytes=7\n7:9 7:8",
        );
        assert_eq!(counts.devices, [(8, 0), (254, 0), (7, 2)]);
        assert_eq!(
            counts.rows.iter().map(|row| row[0]).collect::<Vec<_>>(),
            [1, 3, 7]
        );
    }

    #[test]
    fn keys_in_another_order_find_their_columns() {
        let counts = io_stat(b"8:0 wios=4 rios=3 new=1 wbytes=2 rbytes=1 cost.vrate=9.07\n");
        assert_eq!(counts.devices, [(8, 0)]);
        assert_eq!(counts.rows[0][..4], [1, 2, 3, 4]);
        assert_eq!(
            counts.rows[0][4..],
            [MISSING, MISSING, MISSING, MISSING, MISSING, MISSING, 907]
        );
    }
}
