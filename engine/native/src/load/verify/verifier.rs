//! What workers do for `--verify`: number and stamp writes, and check what reads return.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use super::damage::{DamageLog, DamagedRange};
use super::home::Home;
use super::journal::{Facts, Journal};
use super::ledger::{Entry, WriteMap};
use super::unit::{self, Fields, UNIT_BYTES};
use crate::load::pattern::Part;
use crate::load::system::lock::lock;
use crate::load::targets::target::Target;

const UNIT: u64 = UNIT_BYTES as u64;
/// The largest size of the write maps of a run, over all targets.
const MOST_MAP_BYTES: u64 = 1 << 30;

/// The largest grain: the first knobs may need a smaller one; a larger one would restrict later turns.
const MOST_GRAIN_BYTES: u64 = 4096;

/// What reads of one target returned so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit belongs to the name")]
pub struct ReadSums {
    /// Compared with what was written there.
    pub checked_bytes: u64,
    /// Met a write to the same grain, or one that had failed.
    pub raced_bytes: u64,
    /// This run wrote nothing there.
    pub unwritten_bytes: u64,
}

#[derive(Default)]
pub(super) struct Found {
    pub log: DamageLog,
    /// The same damage is read repeatedly, and reported once.
    pub seen: HashSet<(u64, &'static str)>,
}

pub(super) struct TargetState {
    pub write_map: Arc<WriteMap>,
    written_bytes: AtomicU64,
    pub checked_bytes: AtomicU64,
    pub raced_bytes: AtomicU64,
    pub unwritten_bytes: AtomicU64,
    pub found: Mutex<Found>,
}

/// The write maps of all targets of a run.
pub struct Verifier {
    pub run: u64,
    seed: u64,
    drawn: AtomicU64,
    pub(super) targets: Box<[TargetState]>,
}

/// The grain of a run that begins with these sizes of blocks and stripe units: what all of them are multiples of.
pub fn grain_bytes(sizes: impl Iterator<Item = u64>) -> Result<u64, String> {
    let mut grain_bytes = MOST_GRAIN_BYTES;
    for size in sizes {
        if size % UNIT != 0 {
            return Err(format!(
                "--verify: {size} is not a multiple of {UNIT_BYTES} bytes, of which each says what it is"
            ));
        }
        grain_bytes = grain_bytes.min(1 << size.trailing_zeros());
    }
    Ok(grain_bytes)
}

/// Now, in nanoseconds since 1970.
fn new_run() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| {
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1)
    })
}

impl Verifier {
    /// Opens the write maps of targets: in the files, as far as there are any, else in memory.
    pub fn new(
        targets: &[Arc<Target>],
        files: Vec<Option<std::fs::File>>,
        grain_bytes: u64,
        seed: u64,
    ) -> io::Result<Self> {
        let all: u64 = targets
            .iter()
            .map(|target| target.size_bytes / grain_bytes * 8)
            .sum();
        if all > MOST_MAP_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "--verify needs {} MiB for its journal, 8 bytes for every {grain_bytes}, above {}: use a smaller --size",
                    all >> 20,
                    MOST_MAP_BYTES >> 20
                ),
            ));
        }
        let run = new_run();
        let open = |(index, (target, file)): (usize, (&Arc<Target>, Option<std::fs::File>))| {
            let facts = Facts {
                run,
                target: u32::try_from(index).unwrap_or(u32::MAX),
                seed,
                size_bytes: target.size_bytes,
                grain_bytes,
            };
            let journal = file.map(|file| Journal::create(file, facts)).transpose()?;
            let write_map = WriteMap::new(target.size_bytes, grain_bytes, journal.as_ref())?;
            Ok(TargetState {
                write_map: Arc::new(write_map),
                written_bytes: AtomicU64::new(0),
                checked_bytes: AtomicU64::new(0),
                raced_bytes: AtomicU64::new(0),
                unwritten_bytes: AtomicU64::new(0),
                found: Mutex::default(),
            })
        };
        let each = targets.iter().zip(files).enumerate().map(open);
        Ok(Self {
            run,
            seed,
            drawn: AtomicU64::new(1),
            targets: each.collect::<io::Result<_>>()?,
        })
    }

    pub fn write_map(&self, target: usize) -> &Arc<WriteMap> {
        &self.targets[target].write_map
    }

    pub fn home(&self, target: usize) -> Home {
        Home {
            run: self.run,
            target: u32::try_from(target).unwrap_or(u32::MAX),
        }
    }

    /// Claims the range of a write; None while another write to any of it is outstanding.
    pub fn claim(&self, part: &Part) -> Option<u64> {
        let draw = || self.drawn.fetch_add(1, Relaxed);
        let write_map = &self.targets[part.target].write_map;
        write_map.claim(part.offset, u64::from(part.length), draw)
    }

    /// Whether no write to any of a part is outstanding.
    pub fn is_free(&self, part: &Part) -> bool {
        let write_map = &self.targets[part.target].write_map;
        write_map.is_free(part.offset, u64::from(part.length))
    }

    /// Makes the data of a write whose range was claimed.
    pub fn stamp(&self, part: &Part, sequence: u64, bytes: &mut [u8]) {
        let Home { run, target } = self.home(part.target);
        let units = u32::try_from(u64::from(part.length) / UNIT).unwrap_or(0);
        for (index, unit) in (0..units).zip(bytes.chunks_exact_mut(UNIT_BYTES)) {
            let fields = Fields {
                run,
                target,
                offset: part.offset + u64::from(index) * UNIT,
                sequence,
                seed: self.seed,
                index,
                units,
            };
            if let Ok(unit) = unit.try_into() {
                unit::write(unit, &fields);
            }
        }
    }

    /// Releases the range of a write.
    pub fn wrote(&self, part: &Part, good: bool) {
        let state = &self.targets[part.target];
        state
            .write_map
            .settle(part.offset, u64::from(part.length), good);
        if good {
            state
                .written_bytes
                .fetch_add(u64::from(part.length), Relaxed);
        }
    }

    /// Notes what a read may find at the earliest.
    pub fn before_read(&self, part: &Part, entries: &mut Vec<Entry>) {
        entries.clear();
        let write_map = &self.targets[part.target].write_map;
        write_map.copy(part.offset, u64::from(part.length), entries);
    }

    pub fn written_bytes(&self, target: usize) -> u64 {
        self.targets[target].written_bytes.load(Relaxed)
    }

    pub fn read_sums(&self, target: usize) -> ReadSums {
        let state = &self.targets[target];
        ReadSums {
            checked_bytes: state.checked_bytes.load(Relaxed),
            raced_bytes: state.raced_bytes.load(Relaxed),
            unwritten_bytes: state.unwritten_bytes.load(Relaxed),
        }
    }

    /// Ranges of damage that reads met.
    pub fn damaged_ranges(&self, target: usize) -> usize {
        lock(&self.targets[target].found).log.ranges().len()
    }

    /// Damage that reads met, in the order it was met.
    pub fn damage(&self, target: usize) -> Vec<DamagedRange> {
        lock(&self.targets[target].found).log.ranges().to_vec()
    }
}
