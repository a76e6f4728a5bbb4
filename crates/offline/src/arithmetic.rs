//! Arithmetic with exact fractions: the four operations, powers, roots, percent and parentheses, in signs or in words.

mod evaluate;
mod parse;

use num_rational::BigRational;

pub(super) use parse::Expression;

use super::conversation::{Conversation, Step, Stop};
use super::language::tell;
use evaluate::{EvaluationError, evaluate};

/// The expression that a request is, if it is nothing else.
pub(super) fn expression(asked: &str) -> Option<Expression> {
    parse::expression(asked)
}

/// What an expression comes to, reckoned exactly and checked a second way.
pub(super) fn answer(conversation: &mut Conversation<'_>, expression: &Expression) -> Step<String> {
    let language = conversation.language;
    let written = expression.to_string();
    conversation.think(tell!(
        language,
        "This is arithmetic: {written}. It needs no tool.",
        "这是算术：{written}，不需要工具。"
    ));
    let mut steps = Vec::new();
    let value = match evaluate(expression, &mut steps) {
        Ok(value) => value,
        Err(trouble) => return failed(conversation, &written, &trouble),
    };
    for step in steps {
        conversation.think(step);
    }
    let (decimal, is_exact) = evaluate::decimal(&value);
    let about = evaluate::roughly(expression);
    let is_checked = about.is_finite() && evaluate::is_near(&value, about);
    if is_checked {
        conversation.think(tell!(language, "Checked in floating point: about {about}.", "用浮点数核对：约 {about}。"));
    }
    Ok(match (is_exact, fraction(&value)) {
        (true, _) => format!("{written} = {decimal}"),
        (false, Some(fraction)) => format!("{written} = {fraction} ≈ {decimal}"),
        (false, None) => format!("{written} ≈ {decimal}"),
    })
}

/// A fraction that is short enough to be worth showing.
fn fraction(value: &BigRational) -> Option<String> {
    let fraction = value.to_string();
    (fraction.len() <= 20).then_some(fraction)
}

/// That there is no result is an answer; that this model cannot work it out is none.
fn failed(conversation: &Conversation<'_>, written: &str, trouble: &EvaluationError) -> Step<String> {
    let language = conversation.language;
    match trouble {
        EvaluationError::DivisionByZero => {
            Ok(tell!(language, "{written} has no result: it divides by zero.", "{written} 没有结果：除数是零。"))
        }
        EvaluationError::NotReal => Ok(tell!(
            language,
            "{written} has no real result: a root of a negative number.",
            "{written} 没有实数结果：负数不能开这个方。"
        )),
        EvaluationError::TooLarge => Err(Stop::Say(tell!(
            language,
            "{written} is too large to write out: more than {} digits.",
            "{written} 太大了，写不下：超过 {} 位数字。",
            evaluate::MAX_DIGITS
        ))),
        EvaluationError::Exponent => Err(Stop::Say(tell!(
            language,
            "{written}: I can only take powers with whole exponents, or one half for the square root.",
            "{written}：我只会整数次方，以及 0.5 次方（平方根）。"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str, want: Option<&str>) {
        let request = polis_ports::ModelRequest {
            messages: vec![polis_ports::ChatMessage::user(asked)],
            ..polis_ports::ModelRequest::default()
        };
        let mut conversation = Conversation::new(&request);
        let got = expression(asked).map(|expression| match answer(&mut conversation, &expression) {
            Ok(text) | Err(Stop::Say(text)) => text,
            Err(Stop::Call(calls)) => panic!("{calls:?}"),
        });
        assert_eq!(got.as_deref(), want, "{asked}");
    }

    #[test]
    fn precedence_parentheses_powers_and_signs_are_as_in_school() {
        check("2+3*4", Some("2 + 3 × 4 = 14"));
        check("(2 + 3) * 4", Some("(2 + 3) × 4 = 20"));
        check("2^3^2", Some("2 ^ 3 ^ 2 = 512"));
        check("-2^2", Some("-2 ^ 2 = -4"));
        check("(-2)^2", Some("(-2) ^ 2 = 4"));
        check("2 * -3", Some("2 × -3 = -6"));
        check("10 - 4 - 3", Some("10 - 4 - 3 = 3"));
        check("100 / 8 / 2", Some("100 ÷ 8 ÷ 2 = 6.25"));
        check("0.1 + 0.2", Some("0.1 + 0.2 = 0.3"));
        check("2^-3", Some("2 ^ -3 = 0.125"));
        check("7 / 3", Some("7 ÷ 3 = 7/3 ≈ 2.3333333333"));
        check("1,234.5 * 2", Some("1234.5 × 2 = 2469"));
        check("2**10 = ?", Some("2 ^ 10 = 1024"));
        check("2(3+4)", Some("2 × (3 + 4) = 14"));
        check("17 % 5", Some("17 mod 5 = 2"));
    }

    #[test]
    fn percent_means_what_people_mean() {
        check("15% of 240", Some("15% × 240 = 36"));
        check("what is 12.5 percent of 80?", Some("12.5% × 80 = 10"));
        check("200 + 10%", Some("200 + 10% = 220"));
        check("200 - 10%", Some("200 - 10% = 180"));
        check("200 * 10%", Some("200 × 10% = 20"));
    }

    #[test]
    fn words_in_both_languages_are_understood() {
        check("What is 3 plus 4 times 2?", Some("3 + 4 × 2 = 11"));
        check("calculate 9 divided by 4", Some("9 ÷ 4 = 2.25"));
        check("please compute 2 to the power of 8", Some("2 ^ 8 = 256"));
        check("square root of 144", Some("√144 = 12"));
        check("5 squared", Some("5 ^ 2 = 25"));
        check("计算 (12.5 + 3) × 4", Some("(12.5 + 3) × 4 = 62"));
        check("三加五等于多少？", Some("3 + 5 = 8"));
        check("100减去十二乘以3", Some("100 - 12 × 3 = 64"));
        check("8除以2是多少", Some("8 ÷ 2 = 4"));
        check("2的10次方", Some("2 ^ 10 = 1024"));
        check("240的15%是多少", Some("240 × 15% = 36"));
        check("3万加2千", Some("30000 + 2000 = 32000"));
        check("3 万乘以 12", Some("30000 × 12 = 360000"));
        check("1.5 亿 加 2 百", Some("150000000 + 200 = 150000200"));
        check("九的平方根", None);
        check("5的平方", Some("5 ^ 2 = 25"));
    }

    #[test]
    fn large_numbers_are_exact_and_too_large_ones_are_refused() {
        check("2^100", Some("2 ^ 100 = 1267650600228229401496703205376"));
        check(
            "123456789012345678901234567890 * 987654321",
            Some("123456789012345678901234567890 × 987654321 = 121932631124828532112482853211126352690"),
        );
        check("10^100000", Some("10 ^ 100000 is too large to write out: more than 3000 digits."));
        check("9^9^9^9", Some("9 ^ 9 ^ 9 ^ 9 is too large to write out: more than 3000 digits."));
        check("2^0.3", Some("2 ^ 0.3: I can only take powers with whole exponents, or one half for the square root."));
    }

    #[test]
    fn what_has_no_result_is_said_plainly() {
        check("1/0", Some("1 ÷ 0 has no result: it divides by zero."));
        check("5 / (3 - 3)", Some("5 ÷ (3 - 3) has no result: it divides by zero."));
        check("5除以0", Some("5 ÷ 0 没有结果：除数是零。"));
        check("0^-1", Some("0 ^ -1 has no result: it divides by zero."));
        check("sqrt(-4)", Some("√(-4) has no real result: a root of a negative number."));
    }

    #[test]
    fn what_is_no_arithmetic_is_left_to_others() {
        for asked in [
            "",
            "42",
            "hello",
            "read 1/2",
            "what is the capital of France?",
            "2 +",
            "(2 + 3",
            "3 apples + 2",
            "现在几点",
            "a+b",
        ] {
            check(asked, None);
        }
        assert!(expression(&"(".repeat(100_000)).is_none());
        assert!(expression(&format!("{}1", "-".repeat(100_000))).is_none());
    }
}
