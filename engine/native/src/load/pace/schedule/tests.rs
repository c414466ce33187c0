use super::*;
use crate::load::pace::claims::Claims;

fn schedule(arrival: Arrival, rate_iops: f64, streams: usize) -> Arc<Schedule> {
    let beginning = Beginning {
        arrival,
        rate_iops,
        streams,
        start_ticks: 1 << 40,
        seed: Rng::new(3, 0, 0),
    };
    let skipped = (0..streams).map(|_| AtomicU64::new(0)).collect();
    Arc::new(Schedule::new(&beginning, Clock::shared(), skipped))
}

fn second() -> u64 {
    Clock::shared().ticks(SECOND_NS)
}

#[test]
fn a_constant_stream_is_even_and_streams_alternate() {
    let schedule = schedule(Arrival::Constant, 1000.0, 2);
    let start = 1 << 40;
    let moments: Vec<u64> = (0..1000)
        .flat_map(|_| [schedule.claim(0, start), schedule.claim(1, start)])
        .collect();
    let gap = second() / 1000;
    let even = |pair: &[u64]| (pair[1] - pair[0]).abs_diff(gap) <= gap / 1000;
    assert!(moments.windows(2).all(even));
    assert!((moments[1999] - start).abs_diff(second() * 1999 / 1000) < second() / 10_000);
}

#[test]
fn a_poisson_stream_has_its_rate_and_exponential_gaps() {
    let schedule = schedule(Arrival::Poisson, 1e5, 1);
    let start = 1 << 40;
    let moments: Vec<u64> = (0..200_000).map(|_| schedule.claim(0, start)).collect();
    let seconds = f64::from(u32::try_from((moments[199_999] - start) >> 10).unwrap())
        / f64::from(u32::try_from(second() >> 10).unwrap());
    // The standard deviation of 200,000 gaps is 0.22 % of their sum.
    assert!((seconds / 2.0 - 1.0).abs() < 0.012, "{seconds}");
    let mean = second() / 100_000;
    let longer = |times: u64| {
        moments
            .windows(2)
            .filter(|pair| pair[1] - pair[0] > mean * times)
            .count()
    };
    // Of 200,000 gaps e^-1 and e^-3 are longer than one and three means.
    assert!((72_600..74_600).contains(&longer(1)), "{}", longer(1));
    assert!((9_500..10_400).contains(&longer(3)), "{}", longer(3));
}

#[test]
fn every_arrival_is_claimed_or_skipped_once() {
    let schedule = schedule(Arrival::Constant, 1000.0, 1);
    let start = 1 << 40;
    let mut claims = Claims::default();
    claims.follow(Some(&schedule));
    let issued = (0..100)
        .filter(|_| claims.pass(0, start + second() / 20).unwrap().is_ok())
        .count();
    assert_eq!(issued, 51);
    // One is claimed for later; the schedule is not checked for three seconds.
    schedule.expire(start + 3 * second());
    let skipped = schedule.skipped()[0];
    assert!((1948..=1949).contains(&skipped), "{skipped}");
    assert!(!schedule.has_passed(start + 3 * second()));
    assert!(claims.pass(0, start + 3 * second()).unwrap().is_ok());
    schedule.end(start + 3 * second());
    assert!(schedule.has_passed(u64::MAX));
    drop(claims);
    assert_eq!(schedule.skipped()[0] + 52, 3001);
}

#[test]
fn what_was_given_back_comes_first_and_in_order() {
    let schedule = schedule(Arrival::Constant, 1000.0, 1);
    let start = 1 << 40;
    let (first, second, third) = (
        schedule.claim(0, start),
        schedule.claim(0, start),
        schedule.claim(0, start),
    );
    for moment in [third, first, second] {
        schedule.give_back(0, moment);
    }
    assert_eq!(
        [first, second, third],
        [0; 3].map(|_| schedule.claim(0, start))
    );
}
