//! How data get past the page cache, changed on descriptors that stay open.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::node::Node;
use super::refusal::refused;
use super::target::Target;

/// `engine.job.spec.Mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Around the page cache.
    Direct,
    /// Through the page cache.
    Buffered,
    /// Through the page cache; a write returns when data and metadata are on the medium.
    Sync,
    /// The same for data and what is needed to read them back.
    Dsync,
}

impl Mode {
    pub fn new(name: &str) -> Result<Self, String> {
        match name {
            "direct" => Ok(Self::Direct),
            "buffered" => Ok(Self::Buffered),
            "sync" => Ok(Self::Sync),
            "dsync" => Ok(Self::Dsync),
            other => Err(format!(
                "mode {other} is not direct, buffered, sync or dsync"
            )),
        }
    }

    pub fn is_direct(self) -> bool {
        self == Self::Direct
    }

    /// Flags of every write, as `O_SYNC` and `O_DSYNC` cannot be turned on an open descriptor (fcntl(2), pwritev2(2)).
    pub fn write_flags(self) -> i32 {
        match self {
            Self::Direct | Self::Buffered => 0,
            Self::Sync => libc::RWF_SYNC,
            Self::Dsync => libc::RWF_DSYNC,
        }
    }
}

/// Turns direct I/O on or off for all targets, or for none if one refuses.
pub fn turn(targets: &[impl AsRef<Target>], direct: bool) -> io::Result<()> {
    let nodes: Vec<&Node> = targets
        .iter()
        .flat_map(|target| &target.as_ref().nodes)
        .collect();
    for (position, node) in nodes.iter().enumerate() {
        if let Err(error) = set_direct(node.fd.as_raw_fd(), direct) {
            for other in &nodes[..position] {
                // It took the opposite before.
                drop(set_direct(other.fd.as_raw_fd(), !direct));
            }
            let what = format!("{}: direct I/O", node.name);
            return Err(refused(
                &error,
                &what,
                "this file takes no live change of mode",
            ));
        }
    }
    Ok(())
}

fn set_direct(fd: RawFd, direct: bool) -> io::Result<()> {
    // SAFETY: F_GETFL takes no pointer.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    let wanted = if direct {
        flags | libc::O_DIRECT
    } else {
        flags & !libc::O_DIRECT
    };
    // SAFETY: F_SETFL takes no pointer.
    if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::*;

    fn target(path: &str) -> Arc<Target> {
        Arc::new(Target {
            nodes: vec![Node::new(File::open(path).unwrap().into(), path.into())],
            name: path.into(),
            size_bytes: 4096,
            align_bytes: 512,
            writable: false,
        })
    }

    fn is_direct(target: &Target) -> bool {
        // SAFETY: F_GETFL takes no pointer.
        unsafe { libc::fcntl(target.nodes[0].fd.as_raw_fd(), libc::F_GETFL) & libc::O_DIRECT != 0 }
    }

    #[test]
    fn all_targets_turn_or_none() {
        let path = std::env::temp_dir().join(format!("lunscope-mode-{}", std::process::id()));
        std::fs::write(&path, [0; 4096]).unwrap();
        let (file, memory) = (target(path.to_str().unwrap()), target("/proc/self/stat"));
        let direct_files = turn(&[Arc::clone(&file)], true);
        std::fs::remove_file(&path).unwrap();
        if direct_files.is_err() {
            // A temporary folder in memory of a kernel before 6.6.
            return;
        }
        assert!(is_direct(&file));
        turn(&[Arc::clone(&file)], false).unwrap();
        assert!(!is_direct(&file));
        let refusal = turn(&[Arc::clone(&file), memory], true).unwrap_err();
        assert!(refusal.to_string().contains("/proc/self/stat"), "{refusal}");
        assert!(!is_direct(&file));
    }

    #[test]
    fn only_the_synchronous_modes_flag_their_writes() {
        let flags = |name| Mode::new(name).unwrap().write_flags();
        assert_eq!([flags("direct"), flags("buffered")], [0, 0]);
        assert_eq!(
            [flags("sync"), flags("dsync")],
            [libc::RWF_SYNC, libc::RWF_DSYNC]
        );
        assert!(Mode::new("odirect").unwrap_err().contains("odirect"));
    }
}
