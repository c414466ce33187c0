//! The source of the counters of all disks.

use std::path::PathBuf;

use super::diskstats::Diskstats;
use super::files::{PathError, admit_descriptors, list_disks};
use super::snapshot::{Row, Snapshot};
use super::stat_files::StatFiles;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Auto,
    Diskstats,
    Sysfs,
}

enum Source {
    Diskstats(Diskstats),
    StatFiles(StatFiles),
}

/// Reads the counters of all disks from the cheaper source.
pub struct Block {
    procfs: PathBuf,
    sysfs: PathBuf,
    method: Method,
    switch_bytes: usize,
    width: usize,
    /// Bytes of diskstats for each disk when it was last read.
    disk_bytes: usize,
    source: Option<Source>,
    relist: bool,
    pub rows: Vec<Row>,
    pub generation: u64,
}

impl Block {
    pub fn new(
        procfs: PathBuf,
        sysfs: PathBuf,
        method: Method,
        switch_bytes: usize,
        width: usize,
    ) -> Self {
        Self {
            procfs,
            sysfs,
            method,
            switch_bytes,
            width,
            disk_bytes: 0,
            source: None,
            relist: true,
            rows: Vec::new(),
            generation: 0,
        }
    }

    pub fn rescan(&mut self) {
        self.relist = true;
    }

    pub fn uses_sysfs(&self) -> bool {
        matches!(self.source, Some(Source::StatFiles(_)))
    }

    pub fn malformed(&self) -> usize {
        match &self.source {
            Some(Source::Diskstats(source)) => source.malformed,
            Some(Source::StatFiles(source)) => source.malformed,
            None => 0,
        }
    }

    /// Values of all rows, row by row.
    pub fn read(&mut self) -> Result<Vec<u64>, PathError> {
        if !self.relist {
            if let Some(values) = self.read_known()? {
                return Ok(values);
            }
        }
        self.relist = true;
        let snapshot = self.read_anew()?;
        let (opened, stale) = match &self.source {
            Some(Source::StatFiles(source)) => (source.opened, source.stale),
            _ => (false, false),
        };
        if opened || snapshot.rows != self.rows || self.generation == 0 {
            self.rows = snapshot.rows;
            self.generation += 1;
        }
        self.relist = stale;
        Ok(snapshot.values)
    }

    /// Reads without a listing; None if other devices are there than those known.
    fn read_known(&mut self) -> Result<Option<Vec<u64>>, PathError> {
        match &mut self.source {
            None => Ok(None),
            Some(Source::Diskstats(source)) => {
                source.fill()?;
                Ok(source.parse(self.width))
            }
            Some(Source::StatFiles(source)) => {
                let values = source.read(self.width);
                Ok((!source.stale).then_some(values))
            }
        }
    }

    /// Lists the devices, chooses the source and reads.
    fn read_anew(&mut self) -> Result<Snapshot, PathError> {
        let disks = list_disks(&self.sysfs)?;
        match self.method {
            Method::Diskstats => self.read_diskstats(&disks),
            Method::Sysfs => {
                admit_descriptors(disks.len());
                self.read_stat_files(&disks)
            }
            Method::Auto => self.read_cheapest(&disks),
        }
    }

    /// The kernel walks its device list from the start for every page of diskstats it prints, so that what one device
    /// costs grows with the length of the text; a `stat` file costs the same however many there are.
    fn read_cheapest(&mut self, disks: &[Vec<u8>]) -> Result<Snapshot, PathError> {
        // A fifth shorter than where it was left, so that the source does not alternate.
        let stays = self.uses_sysfs() && disks.len() * self.disk_bytes >= self.switch_bytes / 5 * 4;
        if !stays {
            let snapshot = self.read_diskstats(disks)?;
            let Some(Source::Diskstats(source)) = &self.source else {
                return Ok(snapshot);
            };
            if source.length <= self.switch_bytes {
                return Ok(snapshot);
            }
            self.disk_bytes = source.length / disks.len().max(1);
        }
        if admit_descriptors(disks.len()) {
            if let Ok(snapshot) = self.read_stat_files(disks) {
                return Ok(snapshot);
            }
        }
        self.read_diskstats(disks)
    }

    fn read_stat_files(&mut self, disks: &[Vec<u8>]) -> Result<Snapshot, PathError> {
        let mut source = match self.source.take() {
            Some(Source::StatFiles(source)) => source,
            _ => StatFiles::default(),
        };
        source.relist(disks, &self.sysfs, &self.procfs)?;
        let snapshot = source.read_anew(self.width);
        self.source = Some(Source::StatFiles(source));
        Ok(snapshot)
    }

    fn read_diskstats(&mut self, disks: &[Vec<u8>]) -> Result<Snapshot, PathError> {
        let mut source = match self.source.take() {
            Some(Source::Diskstats(source)) => source,
            _ => Diskstats::open(&self.procfs)?,
        };
        source.fill()?;
        let snapshot = source.parse_anew(disks, self.width);
        self.source = Some(Source::Diskstats(source));
        Ok(snapshot)
    }
}
