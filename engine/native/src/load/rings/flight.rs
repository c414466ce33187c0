//! I/Os in flight on one ring, by the number (`user_data`) in their completion.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::load::counts::outstanding::{Outstanding, word_of};
use crate::load::pattern::Part;

/// An I/O that was issued.
pub struct Flight {
    pub part: Part,
    pub issued_ticks: u64,
    /// Time at which it was first issued, if a path failed it since; else 0.
    pub first_ticks: u64,
    pub attempts: u32,
    pub epoch: u32,
    /// Region of the arena that holds its buffer.
    pub region: usize,
}

impl Flight {
    /// Returns when it was first issued.
    #[inline]
    pub fn began_ticks(&self) -> u64 {
        if self.first_ticks == 0 {
            self.issued_ticks
        } else {
            self.first_ticks
        }
    }
}

/// Numbers are reused and below the most that can be in flight, so that they also index buffers.
pub struct Flights<'a> {
    all: Vec<Flight>,
    outstanding: &'a Outstanding,
    /// The word of each number in `outstanding`, which is found once.
    words: Vec<&'a AtomicU64>,
    free: Vec<usize>,
    /// What numbers are below from now on.
    limit: usize,
    /// Numbers that are free and not below.
    spare: Vec<usize>,
}

impl<'a> Flights<'a> {
    pub fn new(outstanding: &'a Outstanding) -> Self {
        Self {
            all: Vec::new(),
            outstanding,
            words: Vec::new(),
            free: Vec::new(),
            limit: 0,
            spare: Vec::new(),
        }
    }

    /// Returns numbers below this only, which is at least what can be in flight, and takes memory for them.
    pub fn keep_below(&mut self, limit: usize) {
        self.limit = limit;
        let more = limit.saturating_sub(self.all.len());
        self.all.reserve(more);
        self.words.reserve(more);
        self.free.reserve(limit.saturating_sub(self.free.len()));
        self.free.append(&mut self.spare);
        let kept = |number: &usize| *number < limit;
        (self.free, self.spare) = std::mem::take(&mut self.free).into_iter().partition(kept);
    }

    /// The number the next I/O gets.
    #[inline]
    pub fn next_number(&self) -> usize {
        self.free.last().copied().unwrap_or(self.all.len())
    }

    #[inline]
    pub fn add(&mut self, flight: Flight) {
        if let Some(number) = self.free.pop() {
            self.all[number] = flight;
        } else {
            self.words.push(self.outstanding.word(self.all.len()));
            self.all.push(flight);
        }
    }

    #[inline]
    pub fn get(&self, number: usize) -> &Flight {
        &self.all[number]
    }

    pub fn get_mut(&mut self, number: usize) -> &mut Flight {
        &mut self.all[number]
    }

    /// Starts the clock of I/Os about to be submitted.
    #[inline]
    pub fn stamp(&mut self, numbers: impl Iterator<Item = usize>, now_ticks: u64) {
        for number in numbers {
            let flight = &mut self.all[number];
            flight.issued_ticks = now_ticks;
            let word = word_of(flight.part.target, flight.began_ticks());
            self.words[number].store(word, Relaxed);
        }
    }

    /// Frees the number of an I/O that has completed.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        self.words[number].store(0, Relaxed);
        if number < self.limit {
            self.free.push(number);
        } else {
            self.spare.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::counts::stats::Direction;

    #[test]
    fn numbers_in_flight_differ_and_are_used_again() {
        let outstanding = Outstanding::default();
        let mut flights = Flights::new(&outstanding);
        flights.keep_below(8);
        let add = |flights: &mut Flights<'_>, offset| {
            let (number, part) = (
                flights.next_number(),
                Part::alone(0, Direction::Read, offset, 1),
            );
            flights.add(Flight {
                part,
                issued_ticks: 0,
                first_ticks: 0,
                attempts: 1,
                epoch: 0,
                region: 0,
            });
            number
        };
        let numbers: Vec<usize> = (0..3).map(|offset| add(&mut flights, offset)).collect();
        assert_eq!(numbers, [0, 1, 2]);
        flights.remove(1);
        assert_eq!(add(&mut flights, 9), 1);
        assert_eq!(flights.get(1).part.offset, 9);
        assert_eq!(add(&mut flights, 10), 3);
        // 0 to 3 are in flight. Only numbers below the limit are used again once they end, until it is raised.
        flights.keep_below(2);
        for number in [3, 0, 2, 1] {
            flights.remove(number);
        }
        assert_eq!([1, 0], [(); 2].map(|()| add(&mut flights, 11)));
        flights.keep_below(3);
        assert_eq!(add(&mut flights, 12), 2);
    }
}
