//! Percentages as shares of 32 random bits.

/// Chances are drawn as 32 bits.
pub const CERTAIN: u64 = 1 << 32;

/// A percentage as a share of 2^32; None outside 0 to 100.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "0..=2^32"
)]
pub fn chance(percent: f64) -> Option<u64> {
    (0.0..=100.0)
        .contains(&percent)
        .then(|| (percent / 100.0 * CERTAIN as f64).round() as u64)
}
