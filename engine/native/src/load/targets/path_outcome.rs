//! Whether a failed I/O says something of its path or of its target.

use crate::load::counts::errors::SHORT;
use crate::load::pattern::Part;

/// Outcome of an I/O on its path.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Good,
    /// The target refuses it; so would it on any other path.
    TargetFailed,
    PathFailed,
}

/// What the result of an I/O says of its path. `has_its_bytes`: whether the node still has as many bytes as its target.
pub fn outcome_of(part: &Part, result: i32, has_its_bytes: impl FnOnce() -> bool) -> Outcome {
    if u32::try_from(result).is_ok_and(|bytes| bytes == part.length) {
        return Outcome::Good;
    }
    let code = if result < 0 { -result } else { SHORT };
    let blames_path = match code {
        // Errors of the target itself (`blk_path_error` of include/linux/blk_types.h), or this host.
        libc::EOPNOTSUPP
        | libc::EREMOTEIO
        | libc::EBADE
        | libc::ENODATA
        | libc::EILSEQ
        | libc::EINVAL
        | libc::EFAULT
        | libc::ENOMEM
        | libc::EAGAIN
        | libc::EINTR
        | libc::ECANCELED => false,
        // The node of a disk that is gone has no bytes; otherwise the target is full or ends here.
        libc::ENOSPC | SHORT => !has_its_bytes(),
        _ => true,
    };
    if blames_path {
        Outcome::PathFailed
    } else {
        Outcome::TargetFailed
    }
}
