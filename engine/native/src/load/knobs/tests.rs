//! What knobs make of targets, and what they refuse.

use std::fs::File;
use std::sync::Arc;

use super::*;
use crate::load::counts::stats::Direction;
use crate::load::pace::arrival::Arrival;
use crate::load::pace::fsyncs::Flush;
use crate::load::pace::priority::Priorities;
use crate::load::pattern::{BlockShare, CERTAIN, Distribution, StreamPlan};
use crate::load::policy::PolicyName;
use crate::load::targets::mode::Mode;
use crate::load::targets::node::Node;
use crate::load::targets::target::Target;

fn target(size_bytes: u64, writable: bool) -> Arc<Target> {
    let fd = File::open("/dev/null").unwrap().into();
    Arc::new(Target {
        nodes: vec![Node::new(fd, "null".into())],
        name: "null".into(),
        size_bytes,
        align_bytes: 512,
        writable,
    })
}

fn limits() -> Limits {
    Limits {
        max_queue_depth: 64,
        stripe_unit_bytes: 65536,
        thread_per_io: false,
        copies: 1,
        total_depth: false,
        arrival: Arrival::Closed,
        ring_use: RingUse::Sleep,
        streams: None,
        offset_bytes: 0,
        align_bytes: None,
        io_bytes: None,
        loops: None,
        ramp_ns: 0,
        rest: None,
        priorities: Priorities::default(),
        grain_bytes: None,
    }
}

fn knobs(blocks: &[(u64, f64)], read_pct: f64) -> Knobs {
    let share = |(block_bytes, percent): &(u64, f64)| BlockShare {
        block_bytes: *block_bytes,
        percent: *percent,
    };
    let blocks = blocks.iter().map(share).collect();
    Knobs {
        queue_depth: 8,
        stripe_width: 2,
        blocks,
        write_blocks: None,
        read_pct,
        rate_iops: None,
        policy: PolicyName::default(),
        distributions: [Distribution::Uniform, Distribution::Uniform],
        mode: Mode::Direct,
        threads: 1,
        fsync_every: None,
        flush: Flush::Fsync,
    }
}

fn refusal(knobs: &Knobs, limits: &Limits) -> String {
    Settings::new(
        knobs,
        limits,
        &[target(1 << 20, false), target(1 << 20, true)],
    )
    .unwrap_err()
}

#[test]
fn shares_add_up_and_never_fall_as_the_depth_grows() {
    for workers in 1..9 {
        for target in 0..10 {
            for depth in 1..40 {
                let all: usize = (0..workers)
                    .map(|worker| share(depth, target, worker, workers))
                    .sum();
                assert_eq!(all, depth);
                for worker in 0..workers {
                    assert!(
                        share(depth + 1, target, worker, workers)
                            >= share(depth, target, worker, workers)
                    );
                }
            }
        }
    }
}

#[test]
fn spare_workers_keep_nothing() {
    assert_eq!([share(7, 0, 2, 2), share(7, 3, 9, 2)], [0, 0]);
}

#[test]
fn any_block_will_do_through_the_page_cache() {
    let settings = settings(|knobs| {
        (knobs.blocks, knobs.mode) = (shares(&[(1000, 100.0)]), Mode::Dsync);
    });
    assert_eq!(settings.unwrap().part_bytes, 1000);
}

#[test]
fn remainders_are_spread_over_workers() {
    let load = |worker| {
        (0..8)
            .map(|target| share(1, target, worker, 4))
            .sum::<usize>()
    };
    assert_eq!([load(0), load(1), load(2), load(3)], [2, 2, 2, 2]);
}

#[test]
fn knobs_out_of_range_are_named() {
    let good = knobs(&[(4096, 100.0)], 100.0);
    let with = |change: &dyn Fn(&mut Knobs)| {
        let mut knobs = good.clone();
        change(&mut knobs);
        refusal(&knobs, &limits())
    };
    assert!(with(&|knobs| knobs.queue_depth = 0).starts_with("queue_depth 0"));
    assert!(with(&|knobs| knobs.queue_depth = 65).contains("1..64"));
    assert!(with(&|knobs| knobs.stripe_width = 3).starts_with("stripe_width 3"));
    assert!(with(&|knobs| knobs.blocks[0].block_bytes = 100).contains("alignment"));
    assert!(with(&|knobs| knobs.blocks[0].block_bytes = 2 << 20).contains("larger than"));
    assert!(with(&|knobs| knobs.blocks[0].percent = 60.0).contains("60 %"));
    assert!(with(&|knobs| knobs.write_blocks = Some(Vec::new())).contains("0 %"));
    assert!(with(&|knobs| knobs.read_pct = f64::NAN).contains("read_pct"));
    assert!(with(&|knobs| knobs.read_pct = 99.0).contains("not open for writing"));
    assert!(with(&|knobs| knobs.rate_iops = Some(0.0)).contains("rate_iops"));
    assert!(with(&|knobs| knobs.threads = 0).starts_with("threads 0"));
    assert!(with(&|knobs| knobs.threads = 1001).contains("1..1000"));
    let open = Limits {
        arrival: Arrival::Poisson,
        ..limits()
    };
    assert!(refusal(&good, &open).contains("arrivals need a rate"));
}

#[test]
fn a_thread_per_io_has_its_limit() {
    let limits = Limits {
        thread_per_io: true,
        max_queue_depth: 1024,
        ..limits()
    };
    let deep = Knobs {
        queue_depth: 501,
        ..knobs(&[(4096, 100.0)], 100.0)
    };
    assert!(refusal(&deep, &limits).contains("1002 threads, above the limit of 1000"));
}

#[test]
fn a_total_depth_is_shared_out_to_the_last_io() {
    let targets = [target(1 << 20, false), target(1 << 20, false)];
    let total = Limits {
        total_depth: true,
        ..limits()
    };
    let deep = |queue_depth| Knobs {
        queue_depth,
        ..knobs(&[(4096, 100.0)], 100.0)
    };
    let settings = Settings::new(&deep(7), &total, &targets).unwrap();
    assert_eq!([0, 1, 2].map(|target| settings.depth_of(target)), [4, 3, 0]);
    assert_eq!((settings.deepest(), settings.outstanding()), (4, 7));
    assert_eq!(settings.one_queue(), None);
}

#[test]
fn a_total_depth_below_the_targets_is_one_queue() {
    let targets = [target(1 << 20, false), target(1 << 20, false)];
    let total = Limits {
        total_depth: true,
        ..limits()
    };
    let shallow = Knobs {
        queue_depth: 1,
        ..knobs(&[(4096, 100.0)], 100.0)
    };
    let settings = Settings::new(&shallow, &total, &targets).unwrap();
    assert_eq!((settings.one_queue(), settings.outstanding()), (Some(1), 1));
    let each = Settings::new(&shallow, &limits(), &targets).unwrap();
    assert_eq!((each.one_queue(), each.outstanding()), (None, 2));
    let open = Limits {
        arrival: Arrival::Poisson,
        ..total
    };
    let paced = Knobs {
        rate_iops: Some(10.0),
        ..shallow
    };
    assert!(refusal(&paced, &open).contains("one queue, which takes no arrivals"));
}

#[test]
fn a_mirror_fans_out_and_needs_whole_columns() {
    let targets = [(); 4].map(|()| target(1 << 20, false));
    let mirrored = Limits {
        copies: 2,
        ..limits()
    };
    let wide = |stripe_width| Knobs {
        stripe_width,
        ..knobs(&[(4096, 100.0)], 100.0)
    };
    let settings = Settings::new(&wide(4), &mirrored, &targets).unwrap();
    assert_eq!(settings.layout.unwrap().capacity_bytes(), 2 << 20);
    let refusal = Settings::new(&wide(3), &mirrored, &targets).unwrap_err();
    assert!(refusal.contains("not a multiple of the 2 copies"));
}

#[test]
fn only_blocks_beyond_one_unit_fan_out() {
    let targets = [target(1 << 20, false), target(1 << 20, false)];
    let settings =
        |blocks: &[(u64, f64)]| Settings::new(&knobs(blocks, 100.0), &limits(), &targets).unwrap();
    assert!(settings(&[(4096, 50.0), (65536, 50.0)]).layout.is_none());
    assert!(settings(&[(131_072, 100.0)]).layout.is_some());
    assert!(settings(&[(49152, 100.0)]).layout.is_some());
    assert_eq!(settings(&[(131_072, 100.0)]).part_bytes, 131_072);
}

fn settings(change: impl Fn(&mut Knobs)) -> Result<Settings, String> {
    let mut knobs = knobs(&[(4096, 100.0)], 70.0);
    change(&mut knobs);
    let targets = [target(1 << 20, true), target(1 << 20, true)];
    Settings::new(&knobs, &limits(), &targets)
}

fn shares(blocks: &[(u64, f64)]) -> Vec<BlockShare> {
    knobs(blocks, 0.0).blocks
}

#[test]
fn each_direction_has_its_share_and_its_sizes() {
    let settings =
        settings(|knobs| knobs.write_blocks = Some(shares(&[(8192, 50.0), (16384, 50.0)])))
            .unwrap();
    let reads = (0..1000_u64)
        .filter(|step| settings.direction(step * (CERTAIN / 1000)) == Direction::Read)
        .count();
    assert!((699..=701).contains(&reads));
    assert_eq!(settings.block_bytes(Direction::Read, 1 << 31), 4096);
    assert_eq!(settings.block_bytes(Direction::Write, 1 << 31), 16384);
    assert_eq!((settings.part_bytes, settings.always), (16384, None));
}

#[test]
fn sizes_that_are_never_drawn_do_not_count() {
    let settings = settings(|knobs| {
        knobs.read_pct = 100.0;
        knobs.write_blocks = Some(shares(&[(4 << 20, 100.0)]));
    });
    let settings = settings.unwrap();
    assert_eq!(settings.part_bytes, 4096);
    assert_eq!(settings.always, Some((Direction::Read, 4096)));
}

#[test]
fn a_permutation_takes_one_size_and_both_directions() {
    let whole = || Distribution::new("permutation", &[]).unwrap();
    let both = |knobs: &mut Knobs| knobs.distributions = [whole(), whole()];
    assert!(settings(both).is_ok());
    let half = settings(|knobs| knobs.distributions[1] = whole());
    assert!(half.unwrap_err().contains("alike"));
    let mixed = settings(|knobs| {
        both(knobs);
        knobs.write_blocks = Some(shares(&[(8192, 100.0)]));
    });
    assert!(mixed.unwrap_err().contains("one block size"));
}

#[test]
fn streams_need_room_for_two_blocks_each() {
    let of = |streams| {
        let limits = Limits {
            streams: Some(StreamPlan {
                count: streams,
                step_bytes: None,
                jump_bytes: 0,
                separate: false,
            }),
            ..limits()
        };
        let targets = [target(1 << 20, false), target(1 << 20, false)];
        Settings::new(&knobs(&[(65536, 100.0)], 100.0), &limits, &targets)
    };
    assert!(of(1).is_ok() && of(8).is_ok());
    assert!(of(9).unwrap_err().contains("streams 9 leave 116508 bytes"));
}
