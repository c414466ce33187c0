//! The files of one control group, read when they can have changed and parsed when they did.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::files::replace_text;
use super::group_text::{Counts, MISSING, blkio, io_stat, pressure};

const FIRST_BYTES: usize = 4096;
/// Largest file: more than the lines of any host's devices.
const MOST_BYTES: usize = 8 << 20;

/// The names of a hierarchy's files, and what they add up.
pub struct Names {
    /// `io.stat` of cgroup v2, or two files of v1.
    pub counters: Vec<PathBuf>,
    pub pressure: Option<PathBuf>,
    /// Whether the counters of a group include those of its descendants.
    pub adds_up: bool,
}

/// Descriptors that may still be opened and stay open, and the buffer that all files are read into.
pub struct Reading {
    room: usize,
    buffer: Vec<u8>,
}

impl Reading {
    pub fn new(room: usize) -> Self {
        Self {
            room,
            buffer: vec![0; FIRST_BYTES],
        }
    }

    /// What a file holds, from its start.
    fn fill(&mut self, file: &File) -> io::Result<&[u8]> {
        loop {
            match file.read_at(&mut self.buffer, 0) {
                Ok(length) if length == self.buffer.len() && length < MOST_BYTES => {
                    self.buffer.resize(length * 2, 0);
                }
                Ok(length) => return Ok(&self.buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// One file; while open it cannot be confused with that of a later group of the same name.
struct CounterFile {
    path: PathBuf,
    file: Option<File>,
    /// None where it does not exist, or no longer.
    text: Option<Vec<u8>>,
}

impl CounterFile {
    fn new(folder: &Path, name: &Path) -> Self {
        Self {
            path: folder.join(name),
            file: None,
            text: None,
        }
    }

    /// Reads the whole file; whether it differs from what it was.
    fn read(&mut self, reading: &mut Reading) -> bool {
        let kept = self.file.take();
        reading.room += usize::from(kept.is_some());
        let file = kept.or_else(|| open(&self.path).ok());
        let text = file.as_ref().and_then(|file| reading.fill(file).ok());
        let differs = replace_text(&mut self.text, text);
        if self.text.is_some() && reading.room > 0 {
            reading.room -= 1;
            self.file = file;
        }
        differs
    }

    fn close(&mut self, reading: &mut Reading) {
        reading.room += usize::from(self.file.take().is_some());
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(path)
}

/// Whether descendants of a group may have done I/O, or waited for it, since the reading before.
#[derive(Clone, Copy)]
pub struct Activity {
    pub has_moved: bool,
    pub has_waited: bool,
}

/// What a reading changed.
#[derive(Clone, Copy, Default)]
pub struct Changes {
    pub values: bool,
    pub devices: bool,
}

/// Reads the files of a group and keeps their values.
///
/// Counters of a group include those of its descendants: if they are unchanged, the descendants are not read.
pub struct GroupFiles {
    counters: Vec<CounterFile>,
    pressure: Option<CounterFile>,
    pub counts: Counts,
    /// Microseconds in which some and all tasks waited.
    pub stalls: [u64; 2],
    pub activity: Activity,
    is_read: bool,
    is_absent: bool,
}

impl GroupFiles {
    pub fn new(folder: &Path, names: &Names) -> Self {
        let file = |name: &PathBuf| CounterFile::new(folder, name);
        Self {
            counters: names.counters.iter().map(file).collect(),
            pressure: names.pressure.as_ref().map(file),
            counts: Counts::default(),
            stalls: [MISSING; 2],
            activity: Activity {
                has_moved: true,
                has_waited: true,
            },
            is_read: false,
            is_absent: false,
        }
    }

    /// Reads what can have changed, given the activity of the group above; missing files again if `retries`.
    pub fn read(
        &mut self,
        above: Option<Activity>,
        retries: bool,
        adds_up: bool,
        reading: &mut Reading,
    ) -> Changes {
        if self.is_absent && !retries {
            return Changes::default();
        }
        let mut changes = Changes::default();
        if above.is_none_or(|above| above.has_moved) || !self.is_read {
            changes = self.read_counters(adds_up, reading);
        } else {
            self.activity.has_moved = false;
        }
        if !self.counts.devices.is_empty() {
            changes.values |=
                self.read_pressure(above.is_none_or(|above| above.has_waited), reading);
        }
        changes
    }

    fn read_counters(&mut self, adds_up: bool, reading: &mut Reading) -> Changes {
        let mut differs = false;
        for file in &mut self.counters {
            differs |= file.read(reading);
        }
        differs |= !std::mem::replace(&mut self.is_read, true);
        self.is_absent = self.counters.iter().any(|file| file.text.is_none());
        if !differs {
            self.activity.has_moved = self.is_absent || !adds_up;
            return Changes::default();
        }
        self.activity.has_moved = true;
        let before = std::mem::take(&mut self.counts);
        let texts: Vec<&[u8]> = self
            .counters
            .iter()
            .filter_map(|file| file.text.as_deref())
            .collect();
        if !self.is_absent {
            self.counts = match texts[..] {
                [stat] => io_stat(stat),
                [service_bytes, serviced] => blkio(service_bytes, serviced),
                _ => Counts::default(),
            };
        }
        Changes {
            values: true,
            devices: before.devices != self.counts.devices,
        }
    }

    /// Reads how long tasks waited; the last values are kept if no task can have waited.
    fn read_pressure(&mut self, is_awaited: bool, reading: &mut Reading) -> bool {
        let Some(file) = &mut self.pressure else {
            return false;
        };
        let before = self.stalls;
        if is_awaited || before == [MISSING; 2] {
            file.read(reading);
            self.stalls = file.text.as_deref().map_or([MISSING; 2], pressure);
        }
        self.activity.has_waited = self.stalls != before || self.stalls == [MISSING; 2];
        self.stalls != before
    }

    /// Closes all files.
    pub fn close(&mut self, reading: &mut Reading) {
        for file in self.counters.iter_mut().chain(&mut self.pressure) {
            file.close(reading);
        }
    }
}
