//! Attributes of many folders that are read again and again: which of them changed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use super::files::{PathError, open_at, open_folder, read_start, replace_text, room_for};

/// The most sysfs prints for one attribute.
const LONGEST: usize = 4096;

/// Reads after which attributes that were not there are tried again.
const RETRY_EVERY: u64 = 32;

/// `SYSFS_MAGIC` of include/uapi/linux/magic.h.
const SYSFS_MAGIC: i64 = 0x6265_6572;

#[derive(Default)]
struct Slot {
    /// Open as long as descriptors may stay open and the device is there.
    file: Option<File>,
    value: Option<Vec<u8>>,
    /// The folder is there and has no such attribute.
    absent: bool,
}

struct Watch {
    base: File,
    names: Vec<Vec<u8>>,
    attributes: Vec<Vec<u8>>,
    slots: Vec<Slot>,
    known: Vec<bool>,
    /// Descriptors that may still be opened and stay open.
    room: usize,
    reads: u64,
}

/// A row and the values of its attributes.
type Changed = (usize, Vec<Option<Vec<u8>>>);

impl Watch {
    fn new(base: File, names: Vec<Vec<u8>>, attributes: Vec<Vec<u8>>, keeps: bool) -> Self {
        let count = names.len() * attributes.len();
        Self {
            room: if keeps { room_for(count) } else { 0 },
            slots: std::iter::repeat_with(Slot::default).take(count).collect(),
            known: vec![false; names.len()],
            base,
            names,
            attributes,
            reads: 0,
        }
    }

    fn read(&mut self, rows: &[usize]) -> Vec<Changed> {
        self.reads += 1;
        let mut buffer = [0; LONGEST];
        let mut changed = Vec::new();
        for &row in rows {
            if self.read_row(row, &mut buffer) || !self.known[row] {
                self.known[row] = true;
                let values = self.slots_of(row).iter().map(|slot| slot.value.clone());
                changed.push((row, values.collect()));
            }
        }
        changed
    }

    fn slots_of(&self, row: usize) -> &[Slot] {
        let width = self.attributes.len();
        &self.slots[row * width..(row + 1) * width]
    }

    /// Whether any attribute has another value than before.
    fn read_row(&mut self, row: usize, buffer: &mut [u8]) -> bool {
        let width = self.attributes.len();
        let retries = self.reads % RETRY_EVERY == 0;
        let mut folder = None;
        let mut changed = false;
        for (column, attribute) in self.attributes.iter().enumerate() {
            let slot = &mut self.slots[row * width + column];
            if let Some(text) = slot
                .file
                .as_ref()
                .and_then(|file| read_start(file, buffer).ok())
            {
                changed |= replace_text(&mut slot.value, Some(text));
                continue;
            }
            // The device of a descriptor that cannot be read is gone; another one may have its name by now.
            self.room += usize::from(slot.file.take().is_some());
            if slot.absent && !retries {
                continue;
            }
            let folder = folder.get_or_insert_with(|| {
                open_at(
                    &self.base,
                    &self.names[row],
                    libc::O_PATH | libc::O_DIRECTORY,
                )
            });
            let Ok(folder) = folder else {
                changed |= replace_text(&mut slot.value, None);
                continue;
            };
            match open_at(folder, attribute, 0) {
                Ok(file) => {
                    changed |= replace_text(&mut slot.value, read_start(&file, buffer).ok());
                    slot.absent = false;
                    if self.room > 0 {
                        self.room -= 1;
                        slot.file = Some(file);
                    }
                }
                Err(error) => {
                    slot.absent = error.kind() == io::ErrorKind::NotFound;
                    changed |= replace_text(&mut slot.value, None);
                }
            }
        }
        changed
    }
}

fn is_sysfs(folder: &File) -> bool {
    // SAFETY: all fields of the structure are integers, for which zero is a value.
    let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open for the call, and the structure is valid to write to.
    let result = unsafe { libc::fstatfs(folder.as_raw_fd(), &raw mut facts) };
    #[allow(
        clippy::unnecessary_cast,
        reason = "the field is narrower on 32-bit machines"
    )]
    let kind = facts.f_type as i64;
    result == 0 && kind == SYSFS_MAGIC
}

/// Whether a folder is of a kernel's own sysfs.
#[pyfunction]
#[pyo3(name = "is_sysfs")]
#[allow(clippy::needless_pass_by_value, reason = "what Python gives is owned")]
pub fn is_sysfs_folder(folder: PathBuf) -> bool {
    open_folder(&folder).is_ok_and(|folder| is_sysfs(&folder))
}

#[pyclass(frozen, module = "engine._native")]
pub struct AttributeWatch {
    watch: Mutex<Watch>,
    count: usize,
}

#[pymethods]
impl AttributeWatch {
    #[new]
    #[allow(clippy::needless_pass_by_value, reason = "what Python gives is owned")]
    #[pyo3(
        signature = (folder, names, attributes, *, keep = None),
        text_signature = "(folder, names, attributes, *, keep=None)"
    )]
    fn new(
        folder: PathBuf,
        names: Vec<OsString>,
        attributes: Vec<OsString>,
        keep: Option<bool>,
    ) -> Result<Self, PathError> {
        let base = open_folder(&folder)?;
        let keeps = keep.unwrap_or_else(|| is_sysfs(&base));
        let count = names.len();
        let names = names.into_iter().map(OsString::into_vec).collect();
        let attributes = attributes.into_iter().map(OsString::into_vec).collect();
        Ok(Self {
            watch: Mutex::new(Watch::new(base, names, attributes, keeps)),
            count,
        })
    }

    /// Descriptors that are open.
    #[getter]
    fn kept(&self) -> usize {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch
            .slots
            .iter()
            .filter(|slot| slot.file.is_some())
            .count()
    }

    #[pyo3(signature = (rows = None))]
    fn read(&self, py: Python<'_>, rows: Option<Vec<usize>>) -> PyResult<Vec<Changed>> {
        let rows = rows.unwrap_or_else(|| (0..self.count).collect());
        if rows.iter().any(|&row| row >= self.count) {
            return Err(PyIndexError::new_err("rows: no such name"));
        }
        py.detach(|| {
            let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(watch.read(&rows))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("lunscope-watch-{}-{name}", std::process::id()));
            for device in ["sda", "sdb"] {
                fs::create_dir_all(root.join(device)).unwrap();
                fs::write(root.join(device).join("state"), "running\n").unwrap();
            }
            Self(root)
        }

        fn watch(&self, keeps: bool) -> Watch {
            let names = vec![b"sda".to_vec(), b"sdb".to_vec()];
            let attributes = vec![b"state".to_vec(), b"access".to_vec()];
            Watch::new(open_folder(&self.0).unwrap(), names, attributes, keeps)
        }

        fn set(&self, name: &str, text: &str) {
            fs::write(self.0.join(Path::new(name)), text).unwrap();
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn state(text: &str) -> Vec<Option<Vec<u8>>> {
        vec![Some(text.into()), None]
    }

    #[test]
    fn only_what_changed_is_returned_whether_descriptors_are_kept_or_not() {
        for keeps in [false, true] {
            let tree = Tree::new(&format!("change-{keeps}"));
            let mut watch = tree.watch(keeps);
            assert_eq!(watch.read(&[0, 1]).len(), 2);
            assert!(watch.read(&[0, 1]).is_empty());
            tree.set("sdb/state", "offline\n");
            assert!(watch.read(&[0]).is_empty());
            assert_eq!(watch.read(&[0, 1]), [(1, state("offline\n"))]);
            let kept = watch
                .slots
                .iter()
                .filter(|slot| slot.file.is_some())
                .count();
            assert_eq!(kept, if keeps { 2 } else { 0 });
        }
    }

    #[test]
    fn what_vanishes_and_what_appears_is_a_change() {
        let tree = Tree::new("appear");
        let mut watch = tree.watch(false);
        watch.read(&[0, 1]);
        fs::remove_dir_all(tree.0.join("sda")).unwrap();
        assert_eq!(watch.read(&[0, 1]), [(0, vec![None, None])]);
        fs::create_dir(tree.0.join("sda")).unwrap();
        tree.set("sda/state", "running\n");
        assert_eq!(watch.read(&[0, 1]), [(0, state("running\n"))]);
        tree.set("sdb/access", "optimized\n");
        let found = (0..RETRY_EVERY).find_map(|_| watch.read(&[0, 1]).pop());
        let values = vec![Some(b"running\n".to_vec()), Some(b"optimized\n".to_vec())];
        assert_eq!(found, Some((1, values)));
    }

    #[test]
    fn a_temporary_folder_is_no_sysfs() {
        assert!(!is_sysfs(&open_folder(&std::env::temp_dir()).unwrap()));
    }
}
