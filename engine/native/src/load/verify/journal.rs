//! The write map of a target in a file, so that it outlives a run that is killed: a page of facts, then the entries.
//!
//! Workers write the entries through a shared mapping, which costs them nothing and which the kernel keeps whatever
//! becomes of the process. A host that goes down loses what was not written back: then entries are older than the
//! target, which is no damage.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::pages::Pages;

const MAGIC: [u8; 8] = *b"LUNSJRN1";
/// Facts, before the entries.
const FACTS_BYTES: usize = 4096;
/// Numbers behind the magic; the checksum of all follows them.
const NUMBERS: usize = 6;
const CRC_AT: usize = 8 + 8 * NUMBERS;

/// What a journal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub run: u64,
    pub target: u32,
    pub seed: u64,
    pub size_bytes: u64,
    pub grain_bytes: u64,
}

impl Facts {
    fn entries_bytes(&self) -> u64 {
        self.size_bytes / self.grain_bytes * 8
    }

    fn encode(&self) -> [u8; FACTS_BYTES] {
        let mut page = [0; FACTS_BYTES];
        let numbers = [
            self.run,
            u64::from(self.target),
            self.seed,
            self.size_bytes,
            self.grain_bytes,
            0,
        ];
        page[..8].copy_from_slice(&MAGIC);
        for (bytes, number) in page[8..CRC_AT].chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&page[..CRC_AT]);
        page[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        page
    }

    fn decode(page: &[u8; FACTS_BYTES]) -> Option<Self> {
        let number =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| page[8 + 8 * at + byte]));
        let crc = u32::from_le_bytes(std::array::from_fn(|byte| page[CRC_AT + byte]));
        let facts = Self {
            run: number(0),
            target: u32::try_from(number(1)).ok()?,
            seed: number(2),
            size_bytes: number(3),
            grain_bytes: number(4),
        };
        let good = page[..8] == MAGIC
            && crc32c::crc32c(&page[..CRC_AT]) == crc
            && facts.grain_bytes >= 512
            && facts.grain_bytes.is_power_of_two();
        good.then_some(facts)
    }
}

/// A journal in an open file.
pub struct Journal {
    file: File,
    pub facts: Facts,
}

impl Journal {
    /// Makes an empty file a journal; all its space is taken now, as a mapping could not say that the disk is full.
    pub fn create(file: File, facts: Facts) -> io::Result<Self> {
        let bytes = FACTS_BYTES as u64 + facts.entries_bytes();
        file.set_len(bytes)?;
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: posix_fallocate takes no pointers.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        file.write_all_at(&facts.encode(), 0)?;
        Ok(Self { file, facts })
    }

    /// Opens one that was made before; None if it is none, or damaged.
    pub fn open(file: File) -> io::Result<Option<Self>> {
        let mut page = [0; FACTS_BYTES];
        if file.metadata()?.len() < FACTS_BYTES as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut page, 0)?;
        let Some(facts) = Facts::decode(&page) else {
            return Ok(None);
        };
        let whole = file.metadata()?.len() == FACTS_BYTES as u64 + facts.entries_bytes();
        Ok(whole.then_some(Self { file, facts }))
    }

    pub fn pages(&self) -> io::Result<Pages> {
        let grains = self.facts.size_bytes / self.facts.grain_bytes;
        Pages::in_file(grains, self.file.as_raw_fd(), FACTS_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    const FACTS: Facts = Facts {
        run: 77,
        target: 3,
        seed: 9,
        size_bytes: 1 << 20,
        grain_bytes: 4096,
    };

    fn temporary(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("lunscope-{name}-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }

    #[test]
    fn entries_are_read_back_from_the_file() {
        let file = temporary("journal");
        let journal = Journal::create(file.try_clone().unwrap(), FACTS).unwrap();
        let pages = journal.pages().unwrap();
        assert_eq!(pages.words().len(), 256);
        pages.words()[255].store(42, Relaxed);
        drop((pages, journal));
        let again = Journal::open(file).unwrap().unwrap();
        assert_eq!(again.facts, FACTS);
        assert_eq!(again.pages().unwrap().words()[255].load(Relaxed), 42);
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        assert!(Journal::open(temporary("empty")).unwrap().is_none());
        let file = temporary("damaged");
        drop(Journal::create(file.try_clone().unwrap(), FACTS).unwrap());
        file.write_all_at(&[1], 17).unwrap();
        assert!(Journal::open(file.try_clone().unwrap()).unwrap().is_none());
        file.write_all_at(&FACTS.encode(), 0).unwrap();
        file.set_len(8192).unwrap();
        assert!(Journal::open(file).unwrap().is_none(), "cut short");
    }
}
