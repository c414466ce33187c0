//! Pauses of a worker between I/Os (`thinktime` of fio).

/// How often a worker pauses, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// I/Os between two pauses.
    pub every: u64,
    pub ticks: u64,
}

/// What one worker, which has one I/O outstanding at a time, has issued since its last pause.
#[derive(Default)]
pub struct Resting {
    issued: u64,
    until_ticks: u64,
}

impl Resting {
    /// Admits an I/O, or returns the end of the pause, which begins when this is first asked after the last I/O.
    #[inline]
    pub fn pass(&mut self, rest: Rest, now_ticks: u64) -> Result<(), u64> {
        if self.issued >= rest.every {
            self.issued = 0;
            self.until_ticks = now_ticks + rest.ticks;
        }
        if now_ticks < self.until_ticks {
            return Err(self.until_ticks);
        }
        Ok(())
    }

    #[inline]
    pub fn issued(&mut self) {
        self.issued += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_follows_every_so_many_ios() {
        let (rest, mut resting) = (
            Rest {
                every: 2,
                ticks: 50,
            },
            Resting::default(),
        );
        for _ in 0..2 {
            assert_eq!(resting.pass(rest, 100), Ok(()));
            resting.issued();
        }
        assert_eq!(resting.pass(rest, 110), Err(160));
        assert_eq!(resting.pass(rest, 130), Err(160));
        assert_eq!(resting.pass(rest, 160), Ok(()));
    }
}
