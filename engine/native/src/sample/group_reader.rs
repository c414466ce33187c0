//! Counters of all control groups, read and parsed in one call.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::files::room_for;
use super::group_files::{GroupFiles, Names, Reading};
use super::group_text::COLUMNS;

/// Columns of `values`: the counters and both pressures.
const WIDTH: usize = COLUMNS + 2;
/// Columns of `places`: the position of the group, major and minor of the device.
const PLACE: usize = 3;

struct Member {
    number: u64,
    folder: PathBuf,
    /// Position of the group above; its own for the root.
    above: usize,
    files: GroupFiles,
}

struct Groups {
    names: Names,
    reading: Reading,
    most_rows: usize,
    members: Vec<Member>,
    generation: u64,
}

impl Groups {
    /// Takes the groups that are there now, ancestors first; whether any came or went.
    fn follow(&mut self, groups: Vec<(u64, PathBuf, usize)>) -> bool {
        let mut before: HashMap<(u64, PathBuf), GroupFiles> = self
            .members
            .drain(..)
            .map(|member| ((member.number, member.folder), member.files))
            .collect();
        let mut differs = before.len() != groups.len();
        for (number, folder, above) in groups {
            let key = (number, folder);
            let known = before.remove(&key);
            differs |= known.is_none();
            let files = known.unwrap_or_else(|| GroupFiles::new(&key.1, &self.names));
            let (number, folder) = key;
            self.members.push(Member {
                number,
                folder,
                above,
                files,
            });
        }
        for files in before.values_mut() {
            files.close(&mut self.reading);
        }
        self.generation += 1;
        differs
    }

    /// Reads what can have changed; whether anything did.
    fn read(&mut self, retries: bool) -> bool {
        let (mut values, mut devices) = (false, false);
        for at in 0..self.members.len() {
            let above = self.members[at].above;
            let above = (above < at).then(|| self.members[above].files.activity);
            let files = &mut self.members[at].files;
            let changes = files.read(above, retries, self.names.adds_up, &mut self.reading);
            values |= changes.values;
            devices |= changes.devices;
        }
        self.generation += u64::from(devices);
        values
    }

    /// Groups with their positions, up to the one with which there would be too many rows.
    fn shown(&self) -> impl Iterator<Item = (usize, &GroupFiles)> {
        let rows = self.members.iter().scan(0, |rows, member| {
            *rows += member.files.counts.rows.len();
            Some(*rows)
        });
        let members = self.members.iter().map(|member| &member.files);
        members
            .zip(rows)
            .take_while(|(_, rows)| *rows <= self.most_rows)
            .map(|(files, _)| files)
            .enumerate()
    }

    fn has_more(&self) -> bool {
        self.shown().count() < self.members.len()
    }

    fn places(&self) -> Vec<u64> {
        let place = |at: usize, (major, minor): (u64, u64)| [at as u64, major, minor];
        self.shown()
            .flat_map(|(at, files)| {
                let devices = files.counts.devices.iter();
                devices.flat_map(move |&device| place(at, device))
            })
            .collect()
    }

    fn values(&self) -> Vec<u64> {
        let mut values = Vec::new();
        for (_, files) in self.shown() {
            for row in &files.counts.rows {
                values.extend_from_slice(row);
                values.extend_from_slice(&files.stalls);
            }
        }
        values
    }
}

#[pyclass(frozen, module = "engine._native")]
pub struct GroupReader {
    groups: Mutex<Groups>,
}

impl GroupReader {
    /// A panic under the lock leaves counters that later reads replace, so a poisoned lock is taken all the same.
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl GroupReader {
    #[new]
    #[pyo3(signature = (counters, pressure = None, *, adds_up = true, most_open = 1024, most_rows = 16384))]
    fn new(
        counters: Vec<PathBuf>,
        pressure: Option<PathBuf>,
        adds_up: bool,
        most_open: usize,
        most_rows: usize,
    ) -> PyResult<Self> {
        if !(1..=2).contains(&counters.len()) {
            return Err(PyValueError::new_err("counters: neither one file nor two"));
        }
        Ok(Self {
            groups: Mutex::new(Groups {
                names: Names {
                    counters,
                    pressure,
                    adds_up,
                },
                reading: Reading::new(room_for(most_open)),
                most_rows,
                members: Vec::new(),
                generation: 0,
            }),
        })
    }

    /// Changes with the rows.
    #[getter]
    fn generation(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.groups().generation)
    }

    #[getter]
    fn has_more(&self, py: Python<'_>) -> bool {
        py.detach(|| self.groups().has_more())
    }

    fn follow(&self, py: Python<'_>, groups: Vec<(u64, PathBuf, usize)>) -> PyResult<bool> {
        if groups
            .iter()
            .enumerate()
            .any(|(at, (_, _, above))| *above > at)
        {
            return Err(PyValueError::new_err(
                "groups: one is before the group above it",
            ));
        }
        Ok(py.detach(|| self.groups().follow(groups)))
    }

    #[pyo3(signature = (*, retry = false))]
    fn read(&self, py: Python<'_>, retry: bool) -> bool {
        py.detach(|| self.groups().read(retry))
    }

    fn places<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let places = py.detach(|| self.groups().places());
        let rows = places.len() / PLACE;
        places.into_pyarray(py).reshape([rows, PLACE])
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u64>>> {
        let values = py.detach(|| self.groups().values());
        let rows = values.len() / WIDTH;
        values.into_pyarray(py).reshape([rows, WIDTH])
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.groups().follow(Vec::new());
        });
    }
}
