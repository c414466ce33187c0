//! Numbers in the text of a counter file.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

/// Runs of ASCII digits, in order; one that 64 bits do not hold is the largest number.
fn numbers(text: &[u8]) -> Vec<u64> {
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut number: Option<u64> = None;
    for byte in text {
        if byte.is_ascii_digit() {
            let digit = u64::from(byte - b'0');
            number = Some(
                number
                    .unwrap_or(0)
                    .checked_mul(10)
                    .and_then(|tens| tens.checked_add(digit))
                    .unwrap_or(u64::MAX),
            );
        } else {
            found.extend(number.take());
        }
    }
    found.extend(number);
    found
}

#[pyfunction]
pub fn numbers_in<'py>(py: Python<'py>, text: &[u8]) -> Bound<'py, PyArray1<u64>> {
    numbers(text).into_pyarray(py)
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn runs_of_digits_are_numbers() {
        assert_eq!(numbers(b"8:16 rbytes=1 x=2.50\n7"), [8, 16, 1, 2, 50, 7]);
        assert_eq!(numbers(b"none"), [0; 0]);
    }

    #[test]
    fn one_too_large_is_the_largest() {
        assert_eq!(
            numbers(b"18446744073709551615 18446744073709551616 99999999999999999999999"),
            [u64::MAX; 3]
        );
    }
}
