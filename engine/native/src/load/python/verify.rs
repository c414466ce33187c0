//! `VerifyPass` and `journal_facts`.

use std::fs::File;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::descriptors::duplicate;
use super::errors::os_error;
use super::numbers::{seconds, unsigned};
use super::target::LoadTarget;
use crate::load::system::lock::lock;
use crate::load::verify::{
    Damage, DamagedRange, Home, Journal, Outcome, Pass, Reference, WriteMap,
};

/// Name, offset, length, and the numbers that say more of this kind of damage (`engine.damage`).
pub type DamageRow = (&'static str, u64, u64, Vec<u64>);

pub fn damage_row(range: &DamagedRange) -> DamageRow {
    let more = match range.damage {
        Damage::Flipped { bits, first_bit } => vec![bits.into(), first_bit.into()],
        Damage::Garbled { first, last } => vec![first.into(), last.into()],
        Damage::TornAt { byte } => vec![byte.into()],
        Damage::Torn { write, in_flight } => vec![write, in_flight.into()],
        Damage::Stale { found, write } => vec![found, write],
        Damage::Lost { write } => vec![write],
        Damage::Misplaced { from, target } => {
            std::iter::once(from).chain(target.map(u64::from)).collect()
        }
        Damage::Unreadable { errno } => vec![errno.unsigned_abs().into()],
    };
    (range.damage.name(), range.offset, range.length, more)
}

#[pyclass(module = "engine._native", frozen)]
pub struct VerifyPass {
    pass: Pass,
    outcome: Mutex<Outcome>,
}

impl VerifyPass {
    pub fn of(pass: Pass) -> Self {
        Self {
            pass,
            outcome: Mutex::default(),
        }
    }
}

#[pymethods]
impl VerifyPass {
    #[new]
    #[pyo3(signature = (target, journal = None))]
    fn new(target: &Bound<'_, LoadTarget>, journal: Option<RawFd>) -> PyResult<Self> {
        let target = Arc::clone(&target.get().0);
        let reference = match journal {
            Some(fd) => Some(reference(fd)?),
            None => None,
        };
        Ok(Self::of(Pass::new(target, reference, false)))
    }

    #[pyo3(signature = (threads = 4))]
    fn run(&self, py: Python<'_>, threads: i64) -> PyResult<bool> {
        let threads: u64 = unsigned("threads", threads)?;
        let outcome = py.detach(|| self.pass.run(threads.max(1)));
        let outcome = outcome.map_err(|error| os_error(&error))?;
        let finished = outcome.is_some();
        *lock(&self.outcome) = outcome.unwrap_or_default();
        Ok(finished)
    }

    fn cancel(&self) {
        self.pass.cancel();
    }

    #[getter]
    fn progress(&self) -> f64 {
        self.pass.progress()
    }

    #[pyo3(signature = (at_least_s = 0.0))]
    fn outstanding(&self, at_least_s: f64) -> PyResult<(u64, u64)> {
        let at_least = seconds("at_least_s", at_least_s)?;
        let waiting = self.pass.outstanding(at_least);
        Ok((waiting.ios, waiting.since_ns))
    }

    fn damage(&self) -> Vec<DamageRow> {
        lock(&self.outcome).damage.iter().map(damage_row).collect()
    }

    fn sums(&self) -> (u64, u64, u64, u64, u64, u64) {
        let outcome = lock(&self.outcome);
        (
            outcome.sums.good_bytes,
            outcome.sums.home_bytes,
            outcome.sums.foreign_bytes,
            outcome.elsewhere_bytes,
            outcome.skipped_bytes,
            outcome.damaged_bytes,
        )
    }

    #[getter]
    fn latest_run(&self) -> u64 {
        lock(&self.outcome).latest_run
    }
}

fn journal(fd: RawFd) -> PyResult<Option<Journal>> {
    let file = duplicate(fd).map(File::from);
    file.and_then(Journal::open)
        .map_err(|error| os_error(&error))
}

fn reference(fd: RawFd) -> PyResult<Reference> {
    let Some(journal) = journal(fd)? else {
        return Err(PyValueError::new_err("journal: it is none, or damaged"));
    };
    let facts = journal.facts;
    let write_map = WriteMap::new(facts.size_bytes, facts.grain_bytes, Some(&journal));
    Ok(Reference {
        home: Home {
            run: facts.run,
            target: facts.target,
        },
        write_map: Arc::new(write_map.map_err(|error| os_error(&error))?),
    })
}

/// Run, target, size and grain of a journal; None if the file is none, or damaged.
#[pyfunction]
pub fn journal_facts(fd: RawFd) -> PyResult<Option<(u64, u32, u64, u64)>> {
    let facts = journal(fd)?.map(|journal| journal.facts);
    Ok(facts.map(|facts| (facts.run, facts.target, facts.size_bytes, facts.grain_bytes)))
}
