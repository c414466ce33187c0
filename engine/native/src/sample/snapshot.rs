//! The rows of one read of all disks.

/// Who one row is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: Vec<u8>,
    pub major: u32,
    pub minor: u32,
}

impl Row {
    pub fn is(&self, name: &[u8], major: u32, minor: u32) -> bool {
        self.minor == minor && self.major == major && self.name == name
    }
}

/// Rows of one read and their values, row by row.
#[derive(Default)]
pub struct Snapshot {
    pub rows: Vec<Row>,
    pub values: Vec<u64>,
}
