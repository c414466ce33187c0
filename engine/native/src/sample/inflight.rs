//! The Python face of the in-flight sampler.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::files::{PathError, open_at, open_folder, sysfs_name};
use super::inflight_thread::{SUMS, Shared, Watched, run};
use super::pace::Pace;

#[pyclass(frozen, module = "engine._native")]
pub struct InflightSampler {
    sysfs: PathBuf,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl InflightSampler {
    #[new]
    #[pyo3(
        signature = (sysfs = PathBuf::from("/sys"), rate_hz = 1000.0, cpu_share = 0.01),
        text_signature = "(sysfs='/sys', rate_hz=1000.0, cpu_share=0.01)"
    )]
    fn new(sysfs: PathBuf, rate_hz: f64, cpu_share: f64) -> PyResult<Self> {
        if !(0.1..=100_000.0).contains(&rate_hz) {
            return Err(PyValueError::new_err(format!(
                "rate_hz: {rate_hz} is not from 0.1 to 100000"
            )));
        }
        if !(cpu_share > 0.0 && cpu_share <= 1.0) {
            return Err(PyValueError::new_err(format!(
                "cpu_share: {cpu_share} is not above 0 and up to 1"
            )));
        }
        let seed = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |time| u64::from(time.subsec_nanos()));
        let pace = Pace::new(rate_hz, cpu_share, seed);
        let shared = Arc::new(Shared::default());
        let sampling = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("lunscope-sample".into())
            .spawn(move || run(&sampling, pace))
            .map_err(|error| {
                PyOSError::new_err((
                    error.raw_os_error(),
                    format!("no thread for the sampler: {error}"),
                ))
            })?;
        Ok(Self {
            sysfs,
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn watch(&self, py: Python<'_>, names: Vec<OsString>) -> PyResult<Vec<OsString>> {
        let disks = names.into_iter().map(|name| {
            let name = name.into_vec();
            let folder = [b"block/", &sysfs_name(&name)[..]].concat();
            let path = |file: &[u8]| [&folder[..], file].concat();
            (name, vec![path(b"/inflight")], Some(path(b"/stat")))
        });
        let watched = py.detach(|| self.replace(disks))?;
        Ok(watched.into_iter().map(OsString::from_vec).collect())
    }

    fn watch_groups(&self, py: Python<'_>, groups: Vec<(OsString, Vec<OsString>)>) -> PyResult<()> {
        let groups = groups.into_iter().map(|(name, paths)| {
            let paths = paths.into_iter().map(OsString::into_vec).collect();
            (name.into_vec(), paths, None)
        });
        py.detach(|| self.replace(groups))?;
        Ok(())
    }

    fn read<'py>(&self, py: Python<'py>) -> PyResult<(Vec<OsString>, Bound<'py, PyArray2<u64>>)> {
        let (names, sums) = py.detach(|| {
            let mut watched = self.shared.watched();
            let names: Vec<OsString> = watched
                .iter()
                .map(|one| OsString::from_vec(one.name.clone()))
                .collect();
            let sums: Vec<u64> = watched.iter_mut().flat_map(Watched::take).collect();
            drop(watched);
            self.shared.end_interval();
            (names, sums)
        });
        let rows = names.len();
        Ok((names, sums.into_pyarray(py).reshape([rows, SUMS])?))
    }

    #[getter]
    fn cpu_ns(&self) -> u64 {
        self.shared.cpu_ns.load(Ordering::Relaxed)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.stop());
    }
}

impl InflightSampler {
    /// Returns the names of those that are watched.
    fn replace(
        &self,
        wanted: impl Iterator<Item = (Vec<u8>, Vec<Vec<u8>>, Option<Vec<u8>>)>,
    ) -> Result<Vec<Vec<u8>>, PathError> {
        let folder = open_folder(&self.sysfs)?;
        let mut watched = self.shared.watched();
        let mut before: HashMap<Vec<u8>, Watched> = watched
            .drain(..)
            .map(|one| (one.name.clone(), one))
            .collect();
        for (name, paths, stat) in wanted {
            if let Some(one) = before.remove(&name).filter(|one| one.paths == paths) {
                watched.push(one);
                continue;
            }
            let files: io::Result<Vec<File>> =
                paths.iter().map(|path| open_at(&folder, path, 0)).collect();
            // One that has vanished, even in part, or is named twice, is left out.
            if let Ok(files) = files {
                if watched.iter().all(|one| one.name != name) {
                    let stat = stat.and_then(|path| open_at(&folder, &path, 0).ok());
                    watched.push(Watched::new(name, paths, files, stat));
                }
            }
        }
        let names = watched.iter().map(|one| one.name.clone()).collect();
        drop(watched);
        self.wake();
        Ok(names)
    }

    fn wake(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.thread().unpark();
        }
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.wake();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panicked thread has nothing more to say than that it is gone.
            let _ = thread.join();
        }
        self.shared.watched().clear();
    }
}

impl Drop for InflightSampler {
    fn drop(&mut self) {
        self.stop();
    }
}
