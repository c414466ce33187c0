//! Many small files of many folders in one call.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::files::{open_at, open_folder, read_start};

/// The most sysfs prints for one attribute.
const LONGEST: usize = 4096;

/// Fewest folders for each thread, below which starting one costs more than it saves.
const FOLDERS_PER_THREAD: usize = 64;

/// Values of one folder, in the order of the attributes.
type Values = Vec<Option<Vec<u8>>>;

#[pyfunction]
#[pyo3(signature = (folder, names, attributes, *, threads = 1))]
pub fn read_attributes(
    py: Python<'_>,
    folder: PathBuf,
    names: Vec<OsString>,
    attributes: Vec<OsString>,
    threads: usize,
) -> PyResult<Vec<Values>> {
    if threads == 0 {
        return Err(PyValueError::new_err("threads: 0"));
    }
    let names: Vec<Vec<u8>> = names.into_iter().map(OsString::into_vec).collect();
    let attributes: Vec<Vec<u8>> = attributes.into_iter().map(OsString::into_vec).collect();
    py.detach(move || {
        let base = open_folder(&folder)?;
        Ok(read_all(&base, &names, &attributes, threads))
    })
}

fn read_all(base: &File, names: &[Vec<u8>], attributes: &[Vec<u8>], threads: usize) -> Vec<Values> {
    let share = names.len().div_ceil(threads).max(FOLDERS_PER_THREAD);
    if names.len() <= share {
        return read_some(base, names, attributes);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = names
            .chunks(share)
            .map(|chunk| scope.spawn(move || read_some(base, chunk, attributes)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

fn read_some(base: &File, names: &[Vec<u8>], attributes: &[Vec<u8>]) -> Vec<Values> {
    let mut buffer = [0; LONGEST];
    names
        .iter()
        .map(|name| {
            // Resolving the link of a device costs as much as reading a file, so it is done once.
            let Ok(folder) = open_at(base, name, libc::O_PATH | libc::O_DIRECTORY) else {
                return vec![None; attributes.len()];
            };
            attributes
                .iter()
                .map(|attribute| {
                    let file = open_at(&folder, attribute, 0).ok()?;
                    read_start(&file, &mut buffer).ok().map(<[u8]>::to_vec)
                })
                .collect()
        })
        .collect()
}
