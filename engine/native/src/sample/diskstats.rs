//! All devices from PROCFS/diskstats in one pass.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::counters::{number, push_row, skip_blanks};
use super::files::PathError;
use super::snapshot::{Row, Snapshot};

const CHUNK: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Disk,
    MalformedDisk,
    Other,
}

struct Line {
    row: Row,
    standing: Standing,
}

/// Reads PROCFS/diskstats through one descriptor and keeps the lines of whole disks.
///
/// Lines come in the same order as long as no device comes or goes, so each is compared with the one known at its position
/// instead of being looked up.
pub struct Diskstats {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Bytes of the text last read.
    pub length: usize,
    lines: Vec<Line>,
    /// Lines of the last read that could not be understood.
    pub malformed: usize,
}

impl Diskstats {
    pub fn open(procfs: &Path) -> Result<Self, PathError> {
        let path = procfs.join("diskstats");
        let file = File::open(&path).map_err(|error| PathError::new(&path, error))?;
        Ok(Self {
            path,
            file,
            buffer: Vec::new(),
            length: 0,
            lines: Vec::new(),
            malformed: 0,
        })
    }

    /// Reads the whole file; the kernel returns about a page per call whatever the buffer.
    pub fn fill(&mut self) -> Result<(), PathError> {
        self.length = 0;
        loop {
            if self.buffer.len() < self.length + CHUNK {
                self.buffer.resize(self.length + 2 * CHUNK, 0);
            }
            match self
                .file
                .read_at(&mut self.buffer[self.length..], self.length as u64)
            {
                Ok(0) => return Ok(()),
                Ok(count) => self.length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PathError::new(&self.path, error)),
            }
        }
    }

    /// Rows of the text for the devices known; None if others are there.
    pub fn parse(&mut self, width: usize) -> Option<Vec<u64>> {
        let mut values = Vec::with_capacity(self.lines.len() * width);
        let mut malformed = 0;
        let mut known = self.lines.iter();
        for text in lines_of(&self.buffer[..self.length]) {
            let Some((major, minor, name, counters)) = parse_head(text) else {
                malformed += 1;
                continue;
            };
            let line = known
                .next()
                .filter(|line| line.row.is(name, major, minor))?;
            if line.standing == Standing::Other {
                continue;
            }
            let whole = push_row(&mut values, counters, width);
            if whole != (line.standing == Standing::Disk) {
                return None;
            }
            malformed += usize::from(!whole);
        }
        self.malformed = malformed;
        known.next().is_none().then_some(values)
    }

    /// Rows of the text with a fresh listing of whole disks; the lines are then known.
    pub fn parse_anew(&mut self, disks: &[Vec<u8>], width: usize) -> Snapshot {
        let mut unseen: HashSet<&[u8]> = disks.iter().map(Vec::as_slice).collect();
        let mut snapshot = Snapshot::default();
        self.lines.clear();
        self.malformed = 0;
        for text in lines_of(&self.buffer[..self.length]) {
            let Some((major, minor, name, counters)) = parse_head(text) else {
                self.malformed += 1;
                continue;
            };
            let row = Row {
                name: name.to_vec(),
                major,
                minor,
            };
            // A device may come twice when the list changes while the kernel walks it: the first counts.
            let standing = if !unseen.remove(name) {
                Standing::Other
            } else if push_row(&mut snapshot.values, counters, width) {
                snapshot.rows.push(row.clone());
                Standing::Disk
            } else {
                self.malformed += 1;
                Standing::MalformedDisk
            };
            self.lines.push(Line { row, standing });
        }
        snapshot
    }

    /// Name, major and minor of every line of the text.
    pub fn numbers(&self) -> impl Iterator<Item = (&[u8], (u32, u32))> {
        lines_of(&self.buffer[..self.length])
            .filter_map(parse_head)
            .map(|(major, minor, name, _)| (name, (major, minor)))
    }
}

/// Lines with their ends; what follows the last end is a line without one.
fn lines_of(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        // SAFETY: the pointer and length are of one slice; memchr reads no further and returns a pointer into it or null.
        let end = unsafe { libc::memchr(text.as_ptr().cast(), i32::from(b'\n'), text.len()) };
        let length = if end.is_null() {
            text.len()
        } else {
            end as usize - text.as_ptr() as usize + 1
        };
        let (line, rest) = text.split_at(length);
        text = rest;
        Some(line)
    })
}

/// Major, minor, name and counters of a whole line; None if it is none.
fn parse_head(line: &[u8]) -> Option<(u32, u32, &[u8], &[u8])> {
    let line = line.strip_suffix(b"\n")?;
    let (major, rest) = number(line)?;
    let (minor, rest) = number(rest)?;
    let rest = skip_blanks(rest);
    let end = rest.iter().position(|&byte| byte == b' ')?;
    let (name, counters) = rest.split_at(end);
    Some((
        u32::try_from(major).ok()?,
        u32::try_from(minor).ok()?,
        name,
        counters,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEVEN: &str = "1 2 3 4 5 6 7 8 9 10 11";

    fn source(text: &str) -> Diskstats {
        Diskstats {
            path: PathBuf::new(),
            file: File::open("/dev/null").unwrap(),
            buffer: text.as_bytes().to_vec(),
            length: text.len(),
            lines: Vec::new(),
            malformed: 0,
        }
    }

    fn names(snapshot: &Snapshot) -> Vec<&[u8]> {
        snapshot
            .rows
            .iter()
            .map(|row| row.name.as_slice())
            .collect()
    }

    #[test]
    fn partitions_are_left_out_and_known_lines_stay_known() {
        let mut stats = source(&format!(
            "8 0 sda {ELEVEN}\n8 1 sda1 {ELEVEN}\n8 16 sdb {ELEVEN}\n"
        ));
        let snapshot = stats.parse_anew(&[b"sdb".to_vec(), b"sda".to_vec()], 17);
        assert_eq!(names(&snapshot), [b"sda", b"sdb"]);
        assert_eq!(stats.parse(17), Some(snapshot.values));
    }

    #[test]
    fn other_devices_than_those_known_are_noticed() {
        let mut stats = source(&format!("8 0 sda {ELEVEN}\n8 16 sdb {ELEVEN}\n"));
        stats.parse_anew(&[b"sda".to_vec(), b"sdb".to_vec()], 17);
        for other in [
            "8 0 sda",
            "8 0 sda 1 2\n8 32 sdb 1 2",
            "8 0 sda\n8 16 sdb\n8 32 sdc",
        ] {
            let heads: Vec<&str> = other.split('\n').collect();
            let text = heads.join(&format!(" {ELEVEN}\n")) + &format!(" {ELEVEN}\n");
            stats.buffer = text.into_bytes();
            stats.length = stats.buffer.len();
            assert_eq!(stats.parse(17), None);
        }
    }

    #[test]
    fn malformed_lines_are_counted_in_every_read() {
        let mut stats = source(&format!(
            "8 0 sda {ELEVEN}\nrubbish\n8 16 sdb 1 2 3\n8 32 sdc {ELEVEN}\n8 48 sdd {ELEVEN}"
        ));
        let disks = [
            b"sda".to_vec(),
            b"sdb".to_vec(),
            b"sdc".to_vec(),
            b"sdd".to_vec(),
        ];
        let snapshot = stats.parse_anew(&disks, 17);
        assert_eq!(names(&snapshot), [b"sda", b"sdc"]);
        assert_eq!(stats.malformed, 3);
        assert_eq!(stats.parse(17), Some(snapshot.values));
        assert_eq!(stats.malformed, 3);
    }

    #[test]
    fn a_device_listed_twice_has_one_row() {
        let mut stats = source(&format!("8 0 sda {ELEVEN}\n8 0 sda {ELEVEN}\n"));
        assert_eq!(names(&stats.parse_anew(&[b"sda".to_vec()], 17)), [b"sda"]);
    }
}
