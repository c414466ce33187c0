//! Errors of the kernel with what it refused and the fix.

use std::fmt;
use std::io;

#[derive(Debug)]
struct Refusal {
    errno: Option<i32>,
    text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// The same error with `what` was refused before its own words and the `fix` after them.
pub fn refused(error: &io::Error, what: &str, fix: &str) -> io::Error {
    let text = match fix {
        "" => format!("{what}: {}", words(error)),
        fix => format!("{what}: {}: {fix}", words(error)),
    };
    io::Error::new(
        error.kind(),
        Refusal {
            errno: errno(error),
            text,
        },
    )
}

/// The errno of an error, wrapped or not.
pub fn errno(error: &io::Error) -> Option<i32> {
    let refusal = || error.get_ref()?.downcast_ref::<Refusal>()?.errno;
    error.raw_os_error().or_else(refusal)
}

/// The text of the error, without the number that Rust adds; see `errno`.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(errno) => text
            .trim_end_matches(&format!(" (os error {errno})"))
            .to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_and_the_number_stays() {
        let plain = io::Error::from_raw_os_error(libc::ENOMEM);
        let explained = refused(&refused(&plain, "buffers", ""), "io_uring", "use less");
        assert_eq!(
            explained.to_string(),
            "io_uring: buffers: Cannot allocate memory: use less"
        );
        assert_eq!(errno(&explained), Some(libc::ENOMEM));
    }
}
