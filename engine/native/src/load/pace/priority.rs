//! I/O priorities of single I/Os (`ioprio_set(2)`).

use std::cell::Cell;

use crate::load::counts::stats::Direction;
use crate::load::pattern::{Part, mix};

/// A rule that gives I/Os a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub direction: Direction,
    /// Length of the I/Os; 0: any.
    pub bytes: u64,
    /// The rule holds for draws below this, of 2^32: shares of one direction and length add up from rule to rule.
    pub below: u64,
    /// Priority as the kernel has it: the class above bit 13, and the level.
    pub value: u16,
}

/// The first rule that fits an I/O gives its priority; I/Os without any have that of the process.
#[derive(Clone, Debug, Default)]
pub struct Priorities(pub Vec<Rule>);

impl Priorities {
    /// The priority of an I/O; 0 for none of its own.
    #[inline]
    pub fn of(&self, part: &Part) -> u16 {
        if self.0.is_empty() || part.is_fsync() {
            return 0;
        }
        self.drawn(part.direction, u64::from(part.length), draw())
    }

    fn drawn(&self, direction: Direction, bytes: u64, draw: u64) -> u16 {
        let fits = |rule: &&Rule| {
            rule.direction == direction
                && (rule.bytes == 0 || rule.bytes == bytes)
                && draw < rule.below
        };
        self.0.iter().find(fits).map_or(0, |rule| rule.value)
    }
}

/// The next of 2^32 equally likely numbers of this thread.
fn draw() -> u64 {
    thread_local! {
        static DRAWN: Cell<u64> = Cell::new(mix(std::ptr::from_ref(&DRAWN) as u64));
    }
    DRAWN.with(|drawn| {
        let next = drawn.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        drawn.set(next);
        mix(next) >> 32
    })
}

/// Sets the priority of the calling thread, unless it has it; nothing where the load has no priorities.
pub fn turn_thread(priorities: &Priorities, part: &Part) {
    thread_local! {
        static SET: Cell<u16> = const { Cell::new(0) };
    }
    if priorities.0.is_empty() {
        return;
    }
    let value = priorities.of(part);
    SET.with(|set| {
        if set.replace(value) != value {
            const WHO_PROCESS: libc::c_long = 1;
            // SAFETY: the call takes numbers only; 0 is the calling thread.
            unsafe {
                libc::syscall(
                    libc::SYS_ioprio_set,
                    WHO_PROCESS,
                    0 as libc::c_long,
                    libc::c_long::from(value),
                )
            };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u64 = 1 << 31;
    const ALL: u64 = 1 << 32;

    fn rule(direction: Direction, bytes: u64, below: u64, value: u16) -> Rule {
        Rule {
            direction,
            bytes,
            below,
            value,
        }
    }

    #[test]
    fn the_first_rule_that_fits_gives_the_priority() {
        let found = Priorities(vec![
            rule(Direction::Read, 4096, HALF, 1),
            rule(Direction::Read, 0, ALL, 2),
        ]);
        assert_eq!(found.drawn(Direction::Read, 4096, HALF - 1), 1);
        assert_eq!(found.drawn(Direction::Read, 4096, HALF), 2);
        assert_eq!(found.drawn(Direction::Read, 8192, 0), 2);
        assert_eq!(found.drawn(Direction::Write, 4096, 0), 0);
    }

    #[test]
    fn draws_are_uniform() {
        let below = (0..100_000).filter(|_| draw() < ALL / 5).count();
        assert!((19_000..21_000).contains(&below), "{below}");
    }
}
