//! The NUMA node on which a thread runs.

use std::fs;

const NODES: &str = "/sys/devices/system/node";

/// NUMA node of every processor.
pub struct Cells(Vec<u32>);

impl Cells {
    /// All processors in node 0 where the kernel reports no nodes.
    pub fn read() -> Self {
        let mut cells = Vec::new();
        for entry in fs::read_dir(NODES).into_iter().flatten().flatten() {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_prefix("node")?.parse().ok());
            let list = fs::read_to_string(entry.path().join("cpulist"));
            if let (Some(number), Ok(list)) = (number, list) {
                assign(&mut cells, &list, number);
            }
        }
        Self(cells)
    }

    /// The node of the processor that runs this.
    pub fn here(&self) -> u32 {
        // SAFETY: sched_getcpu takes nothing.
        let processor = usize::try_from(unsafe { libc::sched_getcpu() });
        let cell = processor.ok().and_then(|processor| self.0.get(processor));
        cell.copied().unwrap_or(0)
    }
}

/// Notes the node of the processors in a list such as `0-3,8`.
fn assign(cells: &mut Vec<u32>, processors: &str, number: u32) {
    for range in processors.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
            continue;
        };
        if cells.len() <= last {
            cells.resize(last + 1, 0);
        }
        cells[first..=last].fill(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_by_ranges() {
        let mut cells = Vec::new();
        assign(&mut cells, "0-1,4\n", 0);
        assign(&mut cells, "2-3,5", 1);
        assign(&mut cells, "", 7);
        assert_eq!(cells, [0, 0, 1, 1, 0, 1]);
    }
}
