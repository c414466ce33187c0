//! CPU time of the kernel's io-wq threads: they do the I/O of rings that would block.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;

use super::cpu;
use super::lock::lock;

/// The kernel names each after the thread that owns the ring (`io_uring/io-wq.c`).
const NAME: &str = "iou-wrk-";

/// The last reading of every worker seen. The kernel ends them at will: what one did after its last reading is lost.
#[derive(Default)]
pub struct IoWorkers(Mutex<HashMap<libc::pid_t, u64>>);

impl IoWorkers {
    /// CPU time so far of the workers of these threads.
    pub fn ns(&self, owners: &[libc::pid_t]) -> u64 {
        let mut seen = lock(&self.0);
        for worker in workers(owners) {
            if let Some(ns) = cpu::thread_ns(worker) {
                seen.insert(worker, ns);
            }
        }
        seen.values().sum()
    }
}

fn workers(owners: &[libc::pid_t]) -> Vec<libc::pid_t> {
    let serves = |name: &str| {
        let owner = name
            .trim_end()
            .strip_prefix(NAME)
            .and_then(|owner| owner.parse().ok());
        owner.is_some_and(|owner| owners.contains(&owner))
    };
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let ours = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| serves(&name))
    });
    ours.filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}
