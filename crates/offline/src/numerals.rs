//! Numbers as people write them in requests: digits with separators, and Chinese numerals.

/// The number at the beginning of `text` in digits, and how many bytes it takes: `1,234.5`, `.5`, `３`.
pub(super) fn digits(text: &str) -> Option<(String, usize)> {
    let mut number = String::new();
    let mut end = 0;
    let mut is_fraction = false;
    let rest = |at: usize| text[at..].chars();
    while let Some(c) = rest(end).next() {
        let digit = |c: char| c.is_ascii_digit().then_some(c).or_else(|| full_width(c));
        let next_is_digit = rest(end).nth(1).is_some_and(|c| digit(c).is_some());
        if let Some(digit) = digit(c) {
            number.push(digit);
        } else if c == '.' && !is_fraction && next_is_digit {
            is_fraction = true;
            number.push('.');
        } else if matches!(c, ',' | '_' | '，')
            && !is_fraction
            && !number.is_empty()
            && groups_follow(&text[end + c.len_utf8()..])
        {
        } else {
            break;
        }
        end += c.len_utf8();
    }
    let number = if number.starts_with('.') { format!("0{number}") } else { number };
    number.contains(|c: char| c.is_ascii_digit()).then_some((number, end))
}

fn full_width(c: char) -> Option<char> {
    matches!(c, '０'..='９').then(|| char::from_u32(c as u32 - '０' as u32 + '0' as u32)).flatten()
}

/// Three digits and then no fourth: only so is a comma part of a number.
fn groups_follow(text: &str) -> bool {
    let run = text.chars().take_while(char::is_ascii_digit).count();
    run == 3
}

/// The Chinese numeral at the beginning of `text`, and how many bytes it takes: `十二`, `三百零五`, `两万`, `一亿`.
pub(super) fn chinese(text: &str) -> Option<(u64, usize)> {
    let (mut total, mut section, mut digit, mut end) = (0_u64, 0_u64, None, 0);
    for c in text.chars() {
        if let Some(value) = digit_of(c) {
            digit = Some(value);
        } else if let Some(unit) = small_unit(c) {
            section += digit.take().unwrap_or(1) * unit;
        } else if let Some(unit) = large_unit(c) {
            let whole = total + section + digit.take().unwrap_or(0);
            (end > 0).then_some(())?;
            total = whole.checked_mul(unit)?;
            section = 0;
        } else {
            break;
        }
        end += c.len_utf8();
    }
    (end > 0).then_some(())?;
    Some((total + section + digit.unwrap_or(0), end))
}

/// What 百, 千, 万 or 亿 behind digits multiply them with.
fn unit(c: char) -> Option<u64> {
    match c {
        '百' => Some(100),
        '千' => Some(1_000),
        c => large_unit(c),
    }
}

/// The unit behind digits, and how many bytes it takes with the blanks before it: `万`, ` 万`, but not the 百 of 百分之.
pub(super) fn unit_behind(text: &str) -> Option<(u64, usize)> {
    let rest = text.trim_start_matches(' ');
    let c = rest.chars().next()?;
    let unit = unit(c).filter(|_| !rest.starts_with("百分"))?;
    Some((unit, text.len() - rest.len() + c.len_utf8()))
}

fn digit_of(c: char) -> Option<u64> {
    let at = "零一二三四五六七八九".chars().position(|digit| digit == c);
    at.map(|at| at as u64).or(match c {
        '〇' => Some(0),
        '两' => Some(2),
        _ => None,
    })
}

fn small_unit(c: char) -> Option<u64> {
    match c {
        '十' => Some(10),
        '百' => Some(100),
        '千' => Some(1_000),
        _ => None,
    }
}

fn large_unit(c: char) -> Option<u64> {
    match c {
        '万' => Some(10_000),
        '亿' => Some(100_000_000),
        _ => None,
    }
}

/// A small whole number at the beginning of `text`, in digits or Chinese, such as the 5 of `top 5` and the 三 of 前三名.
pub(super) fn small(text: &str) -> Option<(usize, usize)> {
    let found = digits(text).and_then(|(number, end)| Some((number.parse().ok()?, end)));
    found.or_else(|| chinese(text).and_then(|(number, end)| Some((usize::try_from(number).ok()?, end))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (text, want) in [
            ("1,234.50x", Some(("1234.50", 8))),
            ("12, 13", Some(("12", 2))),
            ("1,23", Some(("1", 1))),
            (".5", Some(("0.5", 2))),
            ("3.", Some(("3", 1))),
            ("３４", Some(("34", 6))),
            ("x", None),
            (".", None),
        ] {
            assert_eq!(digits(text), want.map(|(number, end)| (number.to_owned(), end)), "{text}");
        }
        for (text, want) in [
            ("十二", 12),
            ("二十", 20),
            ("三百零五", 305),
            ("两万三千", 23_000),
            ("一亿", 100_000_000),
            ("一千二百三十四", 1234),
            ("零", 0),
        ] {
            assert_eq!(chinese(text), Some((want, text.len())), "{text}");
        }
        assert_eq!((chinese("万岁"), chinese("abc"), chinese("三个")), (None, None, Some((3, 3))));
    }
}
