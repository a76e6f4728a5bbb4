//! What an expression comes to, as an exact fraction and, to check it, roughly.

use num_bigint::{BigInt, Sign};
use num_rational::BigRational;

use super::parse::{Expression, Operator};

/// Most digits of a number that is written out.
pub(super) const MAX_DIGITS: u64 = 3_000;
/// The bits that so many digits have, about.
const MAX_BITS: u64 = MAX_DIGITS * 10 / 3;
/// Digits behind the point of what cannot be written exactly, and most of what can.
const PLACES: u32 = 10;
const MAX_PLACES: u32 = 40;

/// Why an expression has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EvaluationError {
    DivisionByZero,
    TooLarge,
    NotReal,
    Exponent,
}

/// The exact value; each step that was made is written down.
pub(super) fn evaluate(expression: &Expression, steps: &mut Vec<String>) -> Result<BigRational, EvaluationError> {
    let value = match expression {
        Expression::Number(value, _) => value.clone(),
        Expression::Group(inner) => evaluate(inner, steps)?,
        Expression::Percent(inner) => evaluate(inner, steps)? / whole(100),
        Expression::Minus(inner) => -evaluate(inner, steps)?,
        Expression::Root(inner) => root(&evaluate(inner, steps)?)?,
        Expression::Both(left, operator, right) => {
            let a = evaluate(left, steps)?;
            let b = match (operator, &**right) {
                // 200 + 10% is 220.
                (Operator::Plus | Operator::Minus, Expression::Percent(share)) => &a * evaluate(share, steps)? / whole(100),
                _ => evaluate(right, steps)?,
            };
            apply(&a, *operator, &b)?
        }
    };
    if value.numer().bits().max(value.denom().bits()) > MAX_BITS {
        return Err(EvaluationError::TooLarge);
    }
    if matches!(expression, Expression::Both(..) | Expression::Root(_)) {
        let (decimal, is_exact) = decimal(&value);
        steps.push(format!("{expression} {} {decimal}", if is_exact { "=" } else { "≈" }));
    }
    Ok(value)
}

fn apply(a: &BigRational, operator: Operator, b: &BigRational) -> Result<BigRational, EvaluationError> {
    match operator {
        Operator::Plus => Ok(a + b),
        Operator::Minus => Ok(a - b),
        Operator::Times => Ok(a * b),
        Operator::Over | Operator::Modulo if is_zero(b) => Err(EvaluationError::DivisionByZero),
        Operator::Over => Ok(a / b),
        Operator::Modulo => Ok(a - b * (a / b).floor()),
        Operator::Power => power(a, b),
    }
}

fn power(base: &BigRational, exponent: &BigRational) -> Result<BigRational, EvaluationError> {
    if *exponent == BigRational::new(1.into(), 2.into()) {
        return root(base);
    }
    if !exponent.is_integer() {
        return Err(EvaluationError::Exponent);
    }
    if is_zero(base) && exponent.numer().sign() == Sign::Minus {
        return Err(EvaluationError::DivisionByZero);
    }
    let is_unit = base.is_integer() && base.numer().magnitude().bits() <= 1;
    let bits = base.numer().bits().max(base.denom().bits());
    let exponent = match i32::try_from(exponent.to_integer()) {
        Ok(exponent) => exponent,
        Err(_) if is_unit => i32::from((exponent.to_integer() % BigInt::from(2)).sign() != Sign::NoSign) + 2,
        Err(_) => return Err(EvaluationError::TooLarge),
    };
    if !is_unit && (bits - 1).saturating_mul(u64::from(exponent.unsigned_abs())) > MAX_BITS {
        return Err(EvaluationError::TooLarge);
    }
    Ok(base.pow(exponent))
}

/// The square root: exact where it is a fraction, else to forty places.
fn root(value: &BigRational) -> Result<BigRational, EvaluationError> {
    if value.numer().sign() == Sign::Minus {
        return Err(EvaluationError::NotReal);
    }
    let (numer, denom) = (value.numer().sqrt(), value.denom().sqrt());
    let exact = BigRational::new(numer, denom);
    if &(&exact * &exact) == value {
        return Ok(exact);
    }
    let scale = BigInt::from(10).pow(MAX_PLACES);
    let scaled = (value * BigRational::from_integer(&scale * &scale)).to_integer().sqrt();
    Ok(BigRational::new(scaled, scale))
}

/// The value in digits, and whether that is all of it.
pub(super) fn decimal(value: &BigRational) -> (String, bool) {
    if value.is_integer() {
        return (value.to_integer().to_string(), true);
    }
    let exact = (1..MAX_PLACES).find(|&places| (value * tens(places)).is_integer());
    let places = exact.unwrap_or_else(|| {
        // Small ones get as many digits as others.
        let zeros = (0..MAX_DIGITS as u32).find(|&n| (value * tens(n)).to_integer().sign() != Sign::NoSign);
        PLACES + zeros.unwrap_or_default().saturating_sub(1)
    });
    let digits = (value * tens(places)).round().to_integer();
    let sign = if digits.sign() == Sign::Minus { "-" } else { "" };
    let digits = format!("{:0>width$}", digits.magnitude().to_string(), width = places as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places as usize);
    (format!("{sign}{whole}.{fraction}"), exact.is_some())
}

/// The same in floating point.
pub(super) fn roughly(expression: &Expression) -> f64 {
    match expression {
        Expression::Number(_, written) => written.parse().unwrap_or(f64::NAN),
        Expression::Group(inner) => roughly(inner),
        Expression::Percent(inner) => roughly(inner) / 100.0,
        Expression::Minus(inner) => -roughly(inner),
        Expression::Root(inner) => roughly(inner).sqrt(),
        Expression::Both(left, operator, right) => {
            let (a, b) = (roughly(left), roughly(right));
            match (operator, &**right) {
                (Operator::Plus, Expression::Percent(_)) => a + a * b,
                (Operator::Minus, Expression::Percent(_)) => a - a * b,
                (Operator::Plus, _) => a + b,
                (Operator::Minus, _) => a - b,
                (Operator::Times, _) => a * b,
                (Operator::Over, _) => a / b,
                (Operator::Modulo, _) => a - b * (a / b).floor(),
                (Operator::Power, _) => a.powf(b),
            }
        }
    }
}

/// Whether the rough value speaks for the exact one.
pub(super) fn is_near(value: &BigRational, about: f64) -> bool {
    let exact: f64 = decimal(value).0.parse().unwrap_or(f64::NAN);
    (exact - about).abs() <= 1e-9 * exact.abs().max(about.abs()).max(1e-9)
}

fn is_zero(value: &BigRational) -> bool {
    value.numer().sign() == Sign::NoSign
}

fn whole(number: u32) -> BigRational {
    BigRational::from_integer(number.into())
}

fn tens(places: u32) -> BigRational {
    BigRational::from_integer(BigInt::from(10).pow(places))
}
