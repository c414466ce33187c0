//! Devices one by one from SYSFS/block/*/stat, through descriptors that stay open.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use super::counters::{number, push_row};
use super::diskstats::Diskstats;
use super::files::{PathError, open_at, open_folder, read_start, sysfs_name};
use super::snapshot::{Row, Snapshot};

/// A line of counters, or the number of a device, and then some.
const LONGEST: usize = 1024;

struct Stat {
    row: Row,
    file: File,
}

/// Open `stat` files of all whole disks.
#[derive(Default)]
pub struct StatFiles {
    stats: Vec<Stat>,
    /// A device has gone since the last listing.
    pub stale: bool,
    /// The last listing opened devices: new ones, or others under an old name.
    pub opened: bool,
    /// Files of the last read that could not be understood.
    pub malformed: usize,
}

impl StatFiles {
    /// Opens what is new of a listing and closes what is gone.
    ///
    /// Hidden disks (paths of multipathed namespaces) have no number in sysfs: diskstats has theirs.
    pub fn relist(
        &mut self,
        disks: &[Vec<u8>],
        sysfs: &Path,
        procfs: &Path,
    ) -> Result<(), PathError> {
        let folder = open_folder(&sysfs.join("block"))?;
        let mut open: HashMap<Vec<u8>, Stat> = self
            .stats
            .drain(..)
            .map(|stat| (stat.row.name.clone(), stat))
            .collect();
        let mut unnumbered = Vec::new();
        self.opened = false;
        for name in disks {
            if let Some(stat) = open.remove(name) {
                self.stats.push(stat);
                continue;
            }
            match open_stat(&folder, name) {
                Ok((stat, numbered)) => {
                    if !numbered {
                        unnumbered.push(self.stats.len());
                    }
                    self.stats.push(stat);
                    self.opened = true;
                }
                Err(error) if is_shortage(&error) => {
                    return Err(PathError::new(&sysfs.join("block"), error));
                }
                // It has vanished since the listing.
                Err(_) => {}
            }
        }
        if !unnumbered.is_empty() {
            self.number(&unnumbered, procfs);
        }
        self.stale = false;
        Ok(())
    }

    fn number(&mut self, unnumbered: &[usize], procfs: &Path) {
        let Ok(mut diskstats) = Diskstats::open(procfs) else {
            return;
        };
        if diskstats.fill().is_err() {
            return;
        }
        let numbers: HashMap<&[u8], (u32, u32)> = diskstats.numbers().collect();
        for &index in unnumbered {
            let row = &mut self.stats[index].row;
            (row.major, row.minor) = numbers
                .get(row.name.as_slice())
                .copied()
                .unwrap_or_default();
        }
    }

    /// Reads all files; devices that are gone drop out.
    pub fn read(&mut self, width: usize) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.stats.len() * width);
        let mut buffer = [0; LONGEST];
        let mut malformed = 0;
        let before = self.stats.len();
        self.stats.retain(|stat| {
            let Ok(text) = read_start(&stat.file, &mut buffer) else {
                return false;
            };
            let whole = push_row(&mut values, text, width);
            malformed += usize::from(!whole);
            whole
        });
        self.malformed = malformed;
        self.stale |= self.stats.len() < before;
        values
    }

    /// All rows and their identity.
    pub fn read_anew(&mut self, width: usize) -> Snapshot {
        let values = self.read(width);
        Snapshot {
            values,
            rows: self.rows(),
        }
    }

    pub fn rows(&self) -> Vec<Row> {
        self.stats.iter().map(|stat| stat.row.clone()).collect()
    }
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)
    )
}

/// Opens the `stat` of a device, and whether sysfs has its number.
fn open_stat(block: &File, name: &[u8]) -> io::Result<(Stat, bool)> {
    let folder = open_at(block, &sysfs_name(name), libc::O_PATH | libc::O_DIRECTORY)?;
    let file = open_at(&folder, b"stat", 0)?;
    let number = open_at(&folder, b"dev", 0).and_then(|dev| read_number(&dev));
    let (major, minor) = number.as_ref().copied().unwrap_or_default();
    Ok((
        Stat {
            row: Row {
                name: name.to_vec(),
                major,
                minor,
            },
            file,
        },
        number.is_ok(),
    ))
}

/// Reads "major:minor".
fn read_number(dev: &File) -> io::Result<(u32, u32)> {
    let mut buffer = [0; 64];
    let mut text = read_start(dev, &mut buffer)?.to_vec();
    if let Some(colon) = text.iter().position(|&byte| byte == b':') {
        text[colon] = b' ';
    }
    let parse = || {
        let (major, rest) = number(&text)?;
        let (minor, _) = number(rest)?;
        Some((u32::try_from(major).ok()?, u32::try_from(minor).ok()?))
    };
    parse().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}
