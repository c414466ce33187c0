//! What a turn between direct and cached I/O does with the targets, whose descriptors stay open.

use std::io;
use std::os::fd::AsRawFd;

use super::direct_io::set_direct;
use super::node::Node;
use super::target::Target;
use crate::load::counts::errors::ErrorLog;
use crate::load::counts::outstanding::Outstanding;
use crate::load::counts::stats::Direction;
use crate::load::system::clock::Clock;
use crate::load::system::refusal::refused;

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
}
