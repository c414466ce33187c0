//! Direct, buffered or synchronous I/O.

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
    /// Around the page cache, and as `Sync`.
    DirectSync,
    /// Around the page cache, and as `Dsync`.
    DirectDsync,
}

impl Mode {
    pub fn new(name: &str) -> Result<Self, String> {
        match name {
            "direct" => Ok(Self::Direct),
            "buffered" => Ok(Self::Buffered),
            "sync" => Ok(Self::Sync),
            "dsync" => Ok(Self::Dsync),
            "direct-sync" => Ok(Self::DirectSync),
            "direct-dsync" => Ok(Self::DirectDsync),
            other => Err(format!(
                "mode {other} is not direct, buffered, sync, dsync, direct-sync or direct-dsync"
            )),
        }
    }

    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectSync | Self::DirectDsync)
    }

    /// Flags of every write, as `O_SYNC` and `O_DSYNC` cannot be turned on an open descriptor (fcntl(2), pwritev2(2)).
    pub fn write_flags(self) -> i32 {
        match self {
            Self::Direct | Self::Buffered => 0,
            Self::Sync | Self::DirectSync => libc::RWF_SYNC,
            Self::Dsync | Self::DirectDsync => libc::RWF_DSYNC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_synchronous_modes_flag_their_writes() {
        let flags = |name| Mode::new(name).unwrap().write_flags();
        assert_eq!([flags("direct"), flags("buffered")], [0, 0]);
        assert_eq!(
            [flags("sync"), flags("dsync")],
            [libc::RWF_SYNC, libc::RWF_DSYNC]
        );
        assert_eq!(
            [flags("direct-sync"), flags("direct-dsync")],
            [libc::RWF_SYNC, libc::RWF_DSYNC]
        );
        assert!(Mode::new("direct-sync").unwrap().is_direct());
        assert!(!Mode::new("dsync").unwrap().is_direct());
        assert!(Mode::new("odirect").unwrap_err().contains("odirect"));
    }
}
