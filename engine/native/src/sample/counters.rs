//! The counters of one block device as the kernel prints them, in diskstats and in its `stat` file.

/// Columns of a row: fields 4 to 20 of /proc/diskstats.
pub const COLUMNS: usize = 17;

/// A counter this kernel does not have.
pub const MISSING: u64 = u64::MAX;

/// Counters kernels print: 11 since 2.6, discards since 4.18, flushes since 5.5 (admin-guide/iostats.rst).
const GROUPS: [usize; 3] = [11, 15, 17];

/// Digits with which a number cannot overflow; longer ones are added with checks.
const SAFE_DIGITS: usize = 19;

/// The next decimal number of a text and what follows it; blanks before it are skipped.
///
/// None if there is none, it is no number, or it does not fit.
#[inline]
pub fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = skip_blanks(text);
    let mut value: u64 = 0;
    let mut length = 0;
    while let Some(digit) = text.get(length).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        value = if length < SAFE_DIGITS {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        length += 1;
    }
    let rest = &text[length..];
    let ends = rest.first().is_none_or(|&byte| is_blank(byte));
    (length > 0 && ends).then_some((value, rest))
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\n' || byte == b'\t'
}

/// Text without the blanks it starts with.
#[inline]
pub fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text {
        if !is_blank(*first) {
            break;
        }
        text = rest;
    }
    text
}

/// Appends one row of `width` columns, missing where the text has no counter; false and unchanged if it is malformed.
///
/// Counters of later kernels are not read; a group that is printed in part is malformed as a whole and left missing. So
/// is a number below zero: some kernels print the I/Os in flight with a sign, where counting went wrong.
pub fn push_row(rows: &mut Vec<u64>, mut text: &[u8], width: usize) -> bool {
    let mut row = [MISSING; COLUMNS];
    let mut found = 0;
    while found < COLUMNS {
        text = skip_blanks(text);
        if text.is_empty() {
            break;
        }
        let (text_of_number, is_negative) = match text {
            [b'-', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (rest, true),
            _ => (text, false),
        };
        let Some((value, rest)) = number(text_of_number) else {
            return false;
        };
        let value = if is_negative { MISSING } else { value };
        row[found] = value;
        text = rest;
        found += 1;
    }
    let Some(&whole) = GROUPS.iter().rfind(|&&group| group <= found) else {
        return false;
    };
    row[whole..].fill(MISSING);
    rows.extend_from_slice(&row);
    rows.resize(rows.len() + width - COLUMNS, MISSING);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counters: usize) -> Option<Vec<u64>> {
        let text: Vec<String> = (1..=counters).map(|value| value.to_string()).collect();
        let mut rows = Vec::new();
        push_row(&mut rows, text.join(" ").as_bytes(), COLUMNS).then_some(rows)
    }

    #[test]
    fn older_kernels_leave_columns_missing() {
        let eleven = row(11).unwrap();
        assert_eq!((eleven[10], eleven[11]), (11, MISSING));
        let fifteen = row(15).unwrap();
        assert_eq!((fifteen[14], fifteen[15]), (15, MISSING));
        assert_eq!(row(17).unwrap(), (1..=17).collect::<Vec<u64>>());
    }

    #[test]
    fn later_kernels_add_columns_that_are_not_read() {
        assert_eq!(row(21), row(17));
    }

    #[test]
    fn a_group_in_part_is_missing_as_a_whole() {
        assert_eq!(row(13), row(11));
        assert_eq!(row(10), None);
    }

    #[test]
    fn what_is_no_number_spoils_the_row() {
        let mut rows = vec![7];
        for text in [
            &b"1 2 x"[..],
            b"",
            b"1 2 3 4 5 6 7 8 - 10 11",
            b"1 2 3 4 5 6 7 8 -x 10 11",
            b"1 2 3 4 5 6 7 8 --9 10 11",
            b"1 2 3 4 5 6 7 8 9 10 99999999999999999999999",
        ] {
            assert!(!push_row(&mut rows, text, COLUMNS));
            assert_eq!(rows, [7]);
        }
    }

    #[test]
    fn a_number_below_zero_is_missing() {
        let mut rows = Vec::new();
        assert!(push_row(&mut rows, b"1 2 3 4 5 6 7 8 -1 10 11\n", COLUMNS));
        assert_eq!(rows[7..11], [8, MISSING, 10, 11]);
    }

    #[test]
    fn every_length_of_number_is_read_at_every_distance_from_the_end() {
        for length in 1..=19 {
            for value in [
                10_u64.pow(length - 1),
                10_u64.pow(length) - 1,
                10_u64.pow(length) / 7,
            ] {
                for tail in ["", " ", " 9", "\n12345678901"] {
                    let text = format!("{value}{tail}");
                    assert_eq!(
                        number(text.as_bytes()),
                        Some((value, tail.as_bytes())),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_byte_that_is_no_digit_ends_or_spoils_a_number() {
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for digits in 0..9 {
                let text = [&b"123456789"[..digits], &[byte], b"12345678"].concat();
                let found = number(&text).map(|(value, _)| value.to_string().into_bytes());
                let expected = is_blank(byte).then(|| {
                    if digits == 0 {
                        &b"12345678"[..]
                    } else {
                        &text[..digits]
                    }
                });
                assert_eq!(found.as_deref(), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn numbers_end_at_blanks() {
        assert_eq!(number(b"  12 x"), Some((12, &b" x"[..])));
        assert_eq!(number(b"12x"), None);
        assert_eq!(number(b"18446744073709551615"), Some((u64::MAX, &b""[..])));
        assert_eq!(number(b"18446744073709551616"), None);
    }
}
