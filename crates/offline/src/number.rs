//! Exact decimal numbers of tables: sums without the noise of floating point.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;

/// Most digits before and behind the point; a million rows of them can still be summed. What is longer is a name, no number.
const MAX_WHOLE: usize = 18;
const MAX_FRACTION: u32 = 12;

/// `units` / 10^`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Exact {
    units: i128,
    scale: u32,
}

/// What stands between whole and fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    Dot,
    Comma,
}

impl Exact {
    /// Reads a cell: separators of thousands, a currency or percent sign and spaces around are let be.
    pub(super) fn parse(cell: &str, point: Point) -> Option<Self> {
        let signs = ['$', '€', '£', '¥', '￥', '元', '%', '％', ' ', '\u{a0}', '\u{202f}'];
        let cell = cell.trim().trim_matches(signs);
        let (is_negative, rest) = match cell.strip_prefix(['-', '−', '+']) {
            Some(rest) => (!cell.starts_with('+'), rest.trim_matches(signs)),
            None => (false, cell),
        };
        let (rest, exponent) = match rest.split_once(['e', 'E']) {
            Some((rest, exponent)) => (rest, exponent.parse::<i32>().ok().filter(|e| e.abs() <= 30)?),
            None => (rest, 0),
        };
        let (point, comma) = if point == Point::Dot { ('.', ',') } else { (',', '.') };
        let (whole, fraction) = rest.split_once(point).unwrap_or((rest, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole = ungrouped(whole, comma)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.len() > MAX_WHOLE + MAX_FRACTION as usize {
            return None;
        }
        let units: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        let (units, scale) =
            if scale < 0 { (units.checked_mul(power(scale.unsigned_abs())?)?, 0) } else { (units, scale.unsigned_abs()) };
        let number = Self { units: if is_negative { -units } else { units }, scale }.trimmed();
        let is_usual =
            number.scale <= MAX_FRACTION && number.units.unsigned_abs() < 10_u128.pow(MAX_WHOLE as u32 + number.scale);
        is_usual.then_some(number)
    }

    pub(super) fn from_count(count: usize) -> Self {
        Self { units: count as i128, scale: 0 }
    }

    /// A multiple of it, if that is still a usual number.
    pub(super) fn times(self, factor: u64) -> Option<Self> {
        Some(Self { units: self.units.checked_mul(i128::from(factor))?, scale: self.scale }.trimmed())
    }

    /// The exact sum.
    pub(super) fn sum(numbers: impl IntoIterator<Item = Self>) -> Self {
        let sum = numbers.into_iter().fold(Self::default(), |sum, number| {
            let scale = sum.scale.max(number.scale);
            Self { units: sum.at(scale).saturating_add(number.at(scale)), scale }
        });
        sum.trimmed()
    }

    /// A part of it as text: exact where six digits behind the point are enough, else rounded to them.
    pub(super) fn over(self, count: usize) -> String {
        const PLACES: u32 = 6;
        let scale = self.scale.max(PLACES);
        let count = (count.max(1)) as i128;
        let (whole, rest) = (self.at(scale) / count, self.at(scale) % count);
        let exact = Self { units: whole, scale };
        let is_exact = rest == 0 && exact.trimmed().scale <= PLACES;
        if is_exact {
            return exact.to_string();
        }
        // To the nearest, and away from zero in the middle.
        let lower = power(scale - PLACES).unwrap_or(1);
        let all = lower.saturating_mul(count);
        let units = self.at(scale);
        let half = if units < 0 { -(all / 2) } else { all / 2 };
        Self { units: (units + half) / all, scale: PLACES }.to_string()
    }

    /// The number at the scale of all numbers, to compare large multiples of it.
    pub(super) fn to_big(self) -> BigInt {
        BigInt::from(self.units) * BigInt::from(10).pow(MAX_FRACTION.saturating_sub(self.scale))
    }

    fn at(self, scale: u32) -> i128 {
        power(scale - self.scale).map_or(self.units, |more| self.units.saturating_mul(more))
    }

    fn trimmed(mut self) -> Self {
        while self.scale > 0 && self.units % 10 == 0 {
            self.units /= 10;
            self.scale -= 1;
        }
        self
    }
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// The digits without the separators of thousands, which must stand where they belong.
fn ungrouped(whole: &str, comma: char) -> Option<String> {
    let separators = [comma, ' ', '\'', '’', '\u{a0}', '\u{202f}'];
    let groups: Vec<&str> = whole.split(separators).collect();
    let is_digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped =
        groups.len() == 1 || ((1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3));
    (is_grouped && groups.iter().all(is_digits)).then(|| groups.concat())
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.at(scale).cmp(&other.at(scale))
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { units, scale } = self.trimmed();
        let sign = if units < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        if fraction.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_people_write_numbers() {
        for (cell, point, want) in [
            ("12", Point::Dot, Some("12")),
            (" -1,234,567.50 ", Point::Dot, Some("-1234567.5")),
            ("$1,234.00", Point::Dot, Some("1234")),
            ("-¥3.20", Point::Dot, Some("-3.2")),
            ("12.5%", Point::Dot, Some("12.5")),
            ("1.234,5", Point::Comma, Some("1234.5")),
            ("1 234,5 €", Point::Comma, Some("1234.5")),
            ("1.5e3", Point::Dot, Some("1500")),
            ("2E-3", Point::Dot, Some("0.002")),
            ("007", Point::Dot, Some("7")),
            (".5", Point::Dot, Some("0.5")),
            ("-0", Point::Dot, Some("0")),
            ("1,23", Point::Dot, None),
            ("1,2345", Point::Dot, None),
            ("12a", Point::Dot, None),
            ("2024-01-02", Point::Dot, None),
            ("", Point::Dot, None),
            ("-", Point::Dot, None),
            ("e5", Point::Dot, None),
            ("1.2.3", Point::Dot, None),
            ("6222021234567890123456", Point::Dot, None),
        ] {
            assert_eq!(Exact::parse(cell, point).map(|number| number.to_string()).as_deref(), want, "{cell}");
        }
    }

    #[test]
    fn sums_are_exact_and_means_are_rounded_only_where_they_must() {
        let numbers = |cells: &[&str]| cells.iter().map(|cell| Exact::parse(cell, Point::Dot).unwrap()).collect::<Vec<_>>();
        assert_eq!(Exact::sum(numbers(&["0.1", "0.2"])).to_string(), "0.3");
        assert_eq!(Exact::sum(numbers(&["1e17", "0.000000000001"])).to_string(), "100000000000000000.000000000001");
        assert_eq!(Exact::sum(vec![]).to_string(), "0");
        for (sum, count, want) in [
            ("10", 4, "2.5"),
            ("1", 3, "0.333333"),
            ("2", 3, "0.666667"),
            ("-2", 3, "-0.666667"),
            ("0.0000001", 1, "0"),
            ("1", 8, "0.125"),
        ] {
            assert_eq!(Exact::parse(sum, Point::Dot).unwrap().over(count), want, "{sum} / {count}");
        }
        assert!(numbers(&["9", "10.5", "-3"]).iter().max().unwrap().to_string() == "10.5");
    }
}
