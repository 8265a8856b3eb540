//! Says numbers with their units as people read them: counts, bytes, durations.

/// A number with its digits in groups: `312,804`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 crash`, `3 crashes`.
#[must_use]
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Bytes of a file: `41.2 MB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: &[&str] = &["B", "KB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Bytes of memory, which come in powers of two: `4 KiB`, `1.1 MiB`.
#[must_use]
pub fn memory(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 if bytes.is_multiple_of(1024) => format!("{} KiB", bytes >> 10),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Nanoseconds: `8.02 ms`.
#[must_use]
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_carry_their_units() {
        assert_eq!(grouped(312_804), "312,804");
        assert_eq!(grouped(7), "7");
        assert_eq!(
            (count(1, "crash", "crashes"), count(0, "crash", "crashes")),
            ("1 crash".into(), "0 crashes".into())
        );
        assert_eq!(bytes(41_200_000), "41.2 MB");
        assert_eq!((memory(4096), memory(1_153_434)), ("4 KiB".into(), "1.1 MiB".into()));
        assert_eq!(duration(8_022_868), "8.02 ms");
    }
}
