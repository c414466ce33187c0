//! Direct, buffered or synchronous I/O, changed on descriptors that stay open.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::clock::Clock;
use super::errors::ErrorLog;
use super::node::Node;
use super::outstanding::Outstanding;
use super::refusal::refused;
use super::stats::Direction;
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

/// Says which file takes no direct I/O, if one does not.
pub fn check_direct(targets: &[impl AsRef<Target>]) -> io::Result<()> {
    match nodes(targets).find_map(|node| Some((node, node.direct_refusal?))) {
        Some((node, errno)) => Err(refused(
            &io::Error::from_raw_os_error(errno),
            &format!("{}: direct I/O", node.name),
            "this file takes no live change of mode",
        )),
        None => Ok(()),
    }
}

/// Turns direct I/O on or off for all targets; nothing may be outstanding.
pub fn turn(targets: &[impl AsRef<Target>], direct: bool) -> io::Result<()> {
    nodes(targets).try_for_each(|node| {
        set_direct(node.fd.as_raw_fd(), direct)
            .map_err(|error| refused(&error, &format!("{}: direct I/O", node.name), ""))
    })
}

/// Why a descriptor takes no direct I/O, found by turning it on and back off.
pub fn direct_refusal(fd: RawFd) -> Option<i32> {
    match flags(fd) {
        Ok(flags) if flags & libc::O_DIRECT != 0 => None,
        _ => set_direct(fd, true)
            .and_then(|()| set_direct(fd, false))
            .err()
            .and_then(|error| error.raw_os_error()),
    }
}

/// Puts dirty pages onto the medium and out of memory, so that direct I/O meets none and is measured alone.
pub fn write_back(
    targets: &[impl AsRef<Target>],
    errors: &ErrorLog,
    outstanding: &Outstanding,
    clock: Clock,
) {
    for (position, target) in targets.iter().enumerate() {
        let target = target.as_ref();
        outstanding.set(position, position, clock.now());
        for node in target.nodes.iter().filter(|_| target.writable) {
            let fd = node.fd.as_raw_fd();
            // SAFETY: neither call takes a pointer.
            if unsafe { libc::fdatasync(fd) } < 0 {
                let errno = io::Error::last_os_error().raw_os_error();
                errors.record(position, Direction::Write, errno.unwrap_or(libc::EIO), 0);
            }
            // Advice: pages that stay are invalidated by the writes that meet them.
            // SAFETY: as above.
            let _ = unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
        outstanding.clear(position);
    }
}

fn nodes(targets: &[impl AsRef<Target>]) -> impl Iterator<Item = &Node> {
    targets.iter().flat_map(|target| &target.as_ref().nodes)
}

fn flags(fd: RawFd) -> io::Result<i32> {
    // SAFETY: F_GETFL takes no pointer.
    match unsafe { libc::fcntl(fd, libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

fn set_direct(fd: RawFd, direct: bool) -> io::Result<()> {
    let flags = flags(fd)?;
    let wanted = if direct {
        flags | libc::O_DIRECT
    } else {
        flags & !libc::O_DIRECT
    };
    // SAFETY: F_SETFL takes no pointer.
    if unsafe { libc::fcntl(fd, libc::F_SETFL, wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{FromRawFd, OwnedFd};
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
    fn files_turn_there_and_back_and_those_without_direct_io_are_named() {
        let path = std::env::temp_dir().join(format!("lunscope-mode-{}", std::process::id()));
        std::fs::write(&path, [0; 4096]).unwrap();
        let (file, memory) = (target(path.to_str().unwrap()), target("/proc/self/stat"));
        std::fs::remove_file(&path).unwrap();
        let refusal = check_direct(&[Arc::clone(&file), memory]).unwrap_err();
        if check_direct(&[Arc::clone(&file)]).is_err() {
            // A temporary folder in memory of a kernel before 6.6.
            return;
        }
        assert!(refusal.to_string().contains("/proc/self/stat"), "{refusal}");
        assert!(!is_direct(&file), "asking changes nothing");
        turn(&[Arc::clone(&file)], true).unwrap();
        assert!(is_direct(&file));
        turn(&[Arc::clone(&file)], false).unwrap();
        assert!(!is_direct(&file));
    }

    #[test]
    fn data_that_cannot_be_written_back_count_as_an_error_of_their_target() {
        let mut pair = [0; 2];
        // SAFETY: pipe writes two descriptors into a live array.
        assert_eq!(unsafe { libc::pipe(pair.as_mut_ptr()) }, 0);
        // SAFETY: the kernel just gave these descriptors to us alone.
        let [reader, writer] = pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let pipe = Arc::new(Target {
            nodes: vec![Node::new(writer, "pipe".into())],
            name: "pipe".into(),
            size_bytes: 4096,
            align_bytes: 512,
            writable: true,
        });
        let errors = ErrorLog::default();
        let outstanding = Outstanding::default();
        write_back(&[pipe], &errors, &outstanding, Clock::shared());
        assert_eq!(outstanding.each().count(), 0);
        let found: Vec<_> = errors
            .list()
            .iter()
            .map(|one| (one.target, one.errno))
            .collect();
        assert_eq!(found, [(0, libc::EINVAL)]);
        drop(reader);
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
