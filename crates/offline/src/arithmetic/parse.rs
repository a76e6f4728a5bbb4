//! From words to an expression. What does not read as arithmetic from its first to its last word is none.

use std::fmt;
use std::str::FromStr;

use num_rational::BigRational;

use crate::numerals;

/// Longest request that is looked at, in bytes, and deepest nesting.
const MAX_BYTES: usize = 2_000;
const MAX_DEPTH: usize = 60;

/// Something to reckon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expression {
    Number(BigRational, String),
    Percent(Box<Expression>),
    Minus(Box<Expression>),
    Root(Box<Expression>),
    Group(Box<Expression>),
    Both(Box<Expression>, Operator, Box<Expression>),
}

/// What is done with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(_, written) => f.write_str(written),
            Self::Percent(inner) => write!(f, "{inner}%"),
            Self::Minus(inner) => write!(f, "-{inner}"),
            Self::Root(inner) => write!(f, "√{inner}"),
            Self::Group(inner) => write!(f, "({inner})"),
            Self::Both(left, operator, right) => {
                let sign = match operator {
                    Operator::Plus => "+",
                    Operator::Minus => "-",
                    Operator::Times => "×",
                    Operator::Over => "÷",
                    Operator::Modulo => "mod",
                    Operator::Power => "^",
                };
                write!(f, "{left} {sign} {right}")
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(BigRational, String),
    Sign(Operator),
    Percent,
    Root,
    Open,
    Close,
}

const BEFORE: &[&str] = &[
    "what is the result of",
    "what is",
    "what's",
    "how much is",
    "how much are",
    "can you",
    "could you",
    "please",
    "calculate",
    "compute",
    "evaluate",
    "work out",
    "solve",
    "tell me",
    "the result of",
    "请问",
    "请",
    "帮我",
    "计算一下",
    "计算",
    "算一下",
    "算算",
    "算",
    "求",
];
const BEHIND: &[&str] = &[
    "equals what",
    "equals",
    "equal",
    "please",
    "=",
    "?",
    "？",
    "。",
    ".",
    "!",
    "！",
    "等于多少",
    "等于几",
    "等于",
    "是多少",
    "得多少",
    "得几",
    "为多少",
    "的结果",
    "结果",
    "多少",
    "呢",
];

/// Each spelling of a sign; the longer ones first where one begins like another.
const WORDS: &[(&str, Token)] = &[
    ("to the power of", Token::Sign(Operator::Power)),
    ("multiplied by", Token::Sign(Operator::Times)),
    ("divided by", Token::Sign(Operator::Over)),
    ("the square root of", Token::Root),
    ("square root of", Token::Root),
    ("sqrt of", Token::Root),
    ("sqrt", Token::Root),
    ("percent", Token::Percent),
    ("per cent", Token::Percent),
    ("modulo", Token::Sign(Operator::Modulo)),
    ("mod", Token::Sign(Operator::Modulo)),
    ("plus", Token::Sign(Operator::Plus)),
    ("minus", Token::Sign(Operator::Minus)),
    ("times", Token::Sign(Operator::Times)),
    ("**", Token::Sign(Operator::Power)),
    ("加上", Token::Sign(Operator::Plus)),
    ("减去", Token::Sign(Operator::Minus)),
    ("乘以", Token::Sign(Operator::Times)),
    ("除以", Token::Sign(Operator::Over)),
    ("根号", Token::Root),
    ("加", Token::Sign(Operator::Plus)),
    ("减", Token::Sign(Operator::Minus)),
    ("乘", Token::Sign(Operator::Times)),
    ("负", Token::Sign(Operator::Minus)),
    ("+", Token::Sign(Operator::Plus)),
    ("＋", Token::Sign(Operator::Plus)),
    ("-", Token::Sign(Operator::Minus)),
    ("−", Token::Sign(Operator::Minus)),
    ("–", Token::Sign(Operator::Minus)),
    ("－", Token::Sign(Operator::Minus)),
    ("*", Token::Sign(Operator::Times)),
    ("×", Token::Sign(Operator::Times)),
    ("·", Token::Sign(Operator::Times)),
    ("/", Token::Sign(Operator::Over)),
    ("÷", Token::Sign(Operator::Over)),
    ("^", Token::Sign(Operator::Power)),
    ("%", Token::Percent),
    ("％", Token::Percent),
    ("√", Token::Root),
    ("(", Token::Open),
    ("（", Token::Open),
    ("[", Token::Open),
    (")", Token::Close),
    ("）", Token::Close),
    ("]", Token::Close),
];

pub(super) fn expression(asked: &str) -> Option<Expression> {
    if asked.len() > MAX_BYTES {
        return None;
    }
    let lower = asked.to_lowercase();
    let mut text = lower.trim();
    while let Some(rest) = BEFORE.iter().find_map(|word| text.strip_prefix(word)) {
        text = rest.trim_start_matches([' ', ':', '：', ',', '，']);
    }
    while let Some(rest) = BEHIND.iter().find_map(|word| text.strip_suffix(word)) {
        text = rest.trim_end();
    }
    let tokens = tokens(text)?;
    if tokens.iter().all(|token| matches!(token, Token::Number(..))) {
        return None;
    }
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0 };
    let expression = reader.sum()?;
    (reader.at == tokens.len()).then_some(expression)
}

fn number(written: &str) -> Option<Token> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let ratio = format!("{whole}{fraction}/1{}", "0".repeat(fraction.len()));
    Some(Token::Number(BigRational::from_str(&ratio).ok()?, written.to_owned()))
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if let Some((written, end)) = numerals::digits(rest) {
            at += end;
            if let Some((unit, end)) = numerals::unit_behind(&text[at..]) {
                let Token::Number(value, _) = number(&written)? else { return None };
                let value = value * BigRational::from_integer(unit.into());
                let (decimal, is_exact) = super::evaluate::decimal(&value);
                tokens.push(Token::Number(value, if is_exact { decimal } else { written }));
                at += end;
            } else {
                tokens.push(number(&written)?);
            }
        } else if let Some(rest) = rest.strip_prefix("百分之") {
            let (written, end) = numerals::digits(rest).or_else(|| {
                let (value, end) = numerals::chinese(rest)?;
                Some((value.to_string(), end))
            })?;
            tokens.extend([number(&written)?, Token::Percent]);
            at += "百分之".len() + end;
        } else if let Some((value, end)) = numerals::chinese(rest) {
            tokens.push(number(&value.to_string())?);
            at += end;
        } else if let Some((power, end)) = power(rest) {
            tokens.push(Token::Sign(Operator::Power));
            tokens.push(number(&power)?);
            at += end;
        } else if let Some((word, token)) = WORDS.iter().find(|(word, _)| starts_with_word(rest, word)) {
            tokens.push(token.clone());
            at += word.len();
        } else if (starts_with_word(rest, "of") && tokens.last() == Some(&Token::Percent)) || rest.starts_with('的') {
            tokens.push(Token::Sign(Operator::Times));
            at += if rest.starts_with('的') { '的'.len_utf8() } else { 2 };
        } else if c == 'x' && matches!(tokens.last(), Some(Token::Number(..) | Token::Close)) {
            tokens.push(Token::Sign(Operator::Times));
            at += 1;
        } else {
            return None;
        }
    }
    Some(tokens)
}

/// `squared`, 的平方, 的10次方.
fn power(rest: &str) -> Option<(String, usize)> {
    for (word, power) in [("squared", "2"), ("cubed", "3"), ("的平方", "2"), ("的立方", "3")] {
        if rest.starts_with(word) && !rest[word.len()..].starts_with('根') {
            return Some((power.to_owned(), word.len()));
        }
    }
    let inner = rest.strip_prefix('的')?;
    let (power, end) = numerals::small(inner.trim_start())?;
    let end = end + inner.len() - inner.trim_start().len();
    let behind = inner[end..].trim_start();
    let word = ["次方", "次幂"].iter().find(|word| behind.starts_with(**word))?;
    Some((power.to_string(), '的'.len_utf8() + inner.len() - behind.len() + word.len()))
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphabetic();
    text.starts_with(word) && !(word.ends_with(ends) && text[word.len()..].starts_with(ends))
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn next_is(&mut self, token: &Token) -> bool {
        let is_it = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is_it);
        is_it
    }

    fn sign(&mut self, signs: &[Operator]) -> Option<Operator> {
        let Some(Token::Sign(sign)) = self.tokens.get(self.at) else { return None };
        signs.contains(sign).then(|| {
            self.at += 1;
            *sign
        })
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&[Operator::Plus, Operator::Minus]) {
            left = Expression::Both(Box::new(left), sign, Box::new(self.product()?));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.signed()?;
        loop {
            let sign = match self.sign(&[Operator::Times, Operator::Over, Operator::Modulo]) {
                Some(sign) => sign,
                None if self.tokens.get(self.at) == Some(&Token::Percent) => {
                    self.at += 1;
                    Operator::Modulo
                }
                None if matches!(self.tokens.get(self.at), Some(Token::Open)) => Operator::Times,
                None => return Some(left),
            };
            left = Expression::Both(Box::new(left), sign, Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Option<Expression> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let expression = match self.sign(&[Operator::Minus, Operator::Plus]) {
            Some(Operator::Minus) => Expression::Minus(Box::new(self.signed()?)),
            Some(_) => self.signed()?,
            None => self.power()?,
        };
        self.depth -= 1;
        Some(expression)
    }

    fn power(&mut self) -> Option<Expression> {
        let base = self.percent()?;
        match self.sign(&[Operator::Power]) {
            Some(sign) => Some(Expression::Both(Box::new(base), sign, Box::new(self.signed()?))),
            None => Some(base),
        }
    }

    /// A percent sign with a number behind it is the rest of a division.
    fn percent(&mut self) -> Option<Expression> {
        let inner = self.one()?;
        let is_rest = matches!(self.tokens.get(self.at + 1), Some(Token::Number(..) | Token::Open | Token::Root));
        if self.tokens.get(self.at) == Some(&Token::Percent) && !is_rest {
            self.at += 1;
            return Some(Expression::Percent(Box::new(inner)));
        }
        Some(inner)
    }

    fn one(&mut self) -> Option<Expression> {
        if let Some(Token::Number(value, written)) = self.tokens.get(self.at) {
            self.at += 1;
            return Some(Expression::Number(value.clone(), written.clone()));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let inner = if self.next_is(&Token::Root) {
            Expression::Root(Box::new(self.one()?))
        } else if self.next_is(&Token::Open) {
            let inner = self.sum()?;
            self.next_is(&Token::Close).then_some(())?;
            Expression::Group(Box::new(inner))
        } else {
            return None;
        };
        self.depth -= 1;
        Some(inner)
    }
}
