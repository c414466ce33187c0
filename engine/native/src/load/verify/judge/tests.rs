use super::*;
use crate::load::pattern::Rng;

const HOME: Home = Home { run: 9, target: 1 };

/// The units of one write.
fn write(sequence: u64, first: u64, units: u32) -> Vec<Finding> {
    let fields = |index| Fields {
        run: 9,
        target: 1,
        offset: (first + u64::from(index)) * 512,
        sequence,
        seed: 3,
        index,
        units,
    };
    (0..units)
        .map(|index| Finding::Whole(fields(index)))
        .collect()
}

fn judged(home: Option<Home>, units: &[Finding], expected: &[Expected]) -> Vec<(u64, u64, Damage)> {
    let mut judge = Judge::new(home);
    for (index, unit) in units.iter().enumerate() {
        let expected = expected.get(index).copied().unwrap_or(Expected::Anything);
        judge.push(index as u64 * 512, unit, expected);
    }
    judge.skip();
    let ranges = judge.log.ranges().iter();
    ranges
        .map(|range| (range.offset / 512, range.length / 512, range.damage))
        .collect()
}

#[test]
fn small_writes_over_large_ones_are_in_order() {
    let mut units = write(1, 0, 16);
    units.splice(4..6, write(2, 4, 2));
    units.splice(5..6, write(3, 5, 1));
    units.splice(12..16, write(4, 12, 4));
    assert_eq!(judged(None, &units, &[]), []);
}

#[test]
fn a_write_that_did_not_reach_its_end_or_its_beginning_is_torn() {
    let torn = Damage::Torn {
        write: 5,
        in_flight: false,
    };
    let (old, new) = (write(4, 0, 8), write(5, 0, 8));
    let head_new = [&new[..3], &old[3..]].concat();
    assert_eq!(judged(None, &head_new, &[]), [(3, 5, torn)]);
    let tail_new = [&old[..3], &new[3..]].concat();
    assert_eq!(judged(None, &tail_new, &[]), [(0, 3, torn)]);
    let never_there = [&[Finding::Foreign; 3], &new[3..]].concat();
    assert_eq!(judged(None, &never_there, &[]), [(0, 3, torn)]);
    let middle = [&new[..3], &old[3..4], &new[4..]].concat();
    assert_eq!(judged(None, &middle, &[]), [(3, 1, torn)]);
}

#[test]
fn by_the_write_map_an_old_write_is_stale_and_none_is_lost() {
    let mut expected = vec![Expected::Write(5); 8];
    let stale = Damage::Stale { found: 4, write: 5 };
    assert_eq!(
        judged(Some(HOME), &write(4, 0, 8), &expected),
        [(0, 8, stale)]
    );
    let lost = Damage::Lost { write: 5 };
    assert_eq!(
        judged(Some(HOME), &[Finding::Foreign; 8], &expected),
        [(0, 8, lost)]
    );
    assert_eq!(judged(Some(HOME), &write(5, 0, 8), &expected), []);
    expected.fill(Expected::UpTo(5));
    assert_eq!(judged(Some(HOME), &write(4, 0, 8), &expected), []);
    let torn = Damage::Torn {
        write: 5,
        in_flight: true,
    };
    let half = [&write(5, 0, 8)[..4], &write(4, 0, 8)[4..]].concat();
    assert_eq!(judged(Some(HOME), &half, &expected), [(4, 4, torn)]);
    expected.fill(Expected::Unknown);
    assert_eq!(judged(Some(HOME), &half, &expected), []);
}

#[test]
fn swapped_blocks_are_misplaced_where_others_are_in_place() {
    let mut units = [
        write(1, 0, 8),
        write(2, 8, 8),
        write(3, 16, 8),
        write(4, 24, 8),
    ]
    .concat();
    let (head, tail) = units.split_at_mut(8);
    head.swap_with_slice(&mut tail[..8]);
    let mut judge = Judge::new(None);
    for (index, unit) in units.iter().enumerate() {
        judge.push(index as u64 * 512, unit, Expected::Anything);
    }
    judge.skip();
    let (misplaced, elsewhere) = judge.groups.resolve(None);
    let found: Vec<_> = misplaced
        .iter()
        .map(|range| (range.offset / 512, range.length / 512))
        .collect();
    assert_eq!((found, elsewhere), (vec![(0, 8), (8, 8)], 0));
}

#[test]
fn a_file_of_another_load_on_its_disk_is_no_damage() {
    let mut judge = Judge::new(None);
    for (index, unit) in write(1, 0, 64).iter().enumerate() {
        judge.push(8192 + index as u64 * 512, unit, Expected::Anything);
    }
    judge.skip();
    assert_eq!(judge.groups.resolve(None), (Vec::new(), 64 * 512));
    assert_eq!(judge.groups.latest_run(), 0);
}

/// A target of 64 units with the writes it got, and what it held after each.
struct History {
    now: Vec<Finding>,
    before: Vec<Finding>,
    entries: Vec<u64>,
}

fn history(rng: &mut Rng) -> History {
    let mut now = vec![Finding::Foreign; 64];
    let mut before = now.clone();
    let mut entries = vec![0; 64];
    for sequence in 1..=1 + rng.below(60) {
        let units = 1 << rng.below(5);
        let first = units * rng.below(64 / units);
        let written = write(sequence, first, u32::try_from(units).unwrap());
        let range = usize::try_from(first).unwrap()..usize::try_from(first + units).unwrap();
        before[range.clone()].copy_from_slice(&now[range.clone()]);
        now[range.clone()].copy_from_slice(&written);
        entries[range].fill(sequence);
    }
    History {
        now,
        before,
        entries,
    }
}

fn expected_entries(entries: &[u64]) -> Vec<Expected> {
    let expected = |write: &u64| match write {
        0 => Expected::Anything,
        write => Expected::Write(*write),
    };
    entries.iter().map(expected).collect()
}

#[test]
fn whatever_was_written_over_whatever_is_in_order() {
    let mut rng = Rng::new(1, 2, 3);
    for _ in 0..2000 {
        let History { now, entries, .. } = history(&mut rng);
        assert_eq!(judged(None, &now, &[]), []);
        assert_eq!(judged(Some(HOME), &now, &expected_entries(&entries)), []);
    }
}

#[test]
fn any_unit_that_is_put_back_is_found_and_nothing_else() {
    let mut rng = Rng::new(4, 5, 6);
    for _ in 0..2000 {
        let History {
            mut now,
            before,
            entries,
        } = history(&mut rng);
        let mut expected = Vec::new();
        for index in 0..64 {
            if rng.below(8) == 0 && entries[index] > 0 {
                now[index] = before[index];
                expected.push(index as u64);
            }
        }
        let found: Vec<u64> = judged(Some(HOME), &now, &expected_entries(&entries))
            .iter()
            .flat_map(|(first, units, _)| *first..first + units)
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn without_a_write_map_only_what_was_put_back_is_called_torn() {
    let mut rng = Rng::new(7, 8, 9);
    let mut torn = 0;
    for _ in 0..2000 {
        let History {
            mut now, before, ..
        } = history(&mut rng);
        let index = usize::try_from(rng.below(64)).unwrap();
        now[index] = before[index];
        for (first, units, _) in judged(None, &now, &[]) {
            assert_eq!((first, units), (index as u64, 1));
            torn += 1;
        }
    }
    assert!(torn > 500, "{torn}");
}
