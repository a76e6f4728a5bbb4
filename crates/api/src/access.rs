//! Who calls, and what a caller may do.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use polis_domain::PersonId;

use crate::ApiError;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Look at what is there.
    Read,
    /// Submit a request, and call it off.
    Send,
    /// Speak for the person where one is asked.
    Approve,
    /// Change who is there, and the societies themselves.
    Admin,
    /// Use the other scopes also for what belongs to other persons.
    Everyone,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Read, Self::Send, Self::Approve, Self::Admin, Self::Everyone];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Approve => "approve",
            Self::Admin => "admin",
            Self::Everyone => "everyone",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Several scopes, written `read,send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scopes(u8);

/// A word that is no scope.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scope; use read, send, approve, admin or everyone")]
pub struct BadScope(String);

impl Scopes {
    /// Everything.
    pub const ALL: Self = Self(0b1_1111);

    /// The empty set of scopes.
    pub const NONE: Self = Self(0);

    /// Whether this one is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

impl FromStr for Scopes {
    type Err = BadScope;

    fn from_str(text: &str) -> Result<Self, BadScope> {
        let one = |word: &str| {
            let word = word.trim();
            Scope::ALL.into_iter().find(|scope| scope.as_str() == word).ok_or_else(|| BadScope(word.to_owned()))
        };
        text.split(',').map(one).collect()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Scope::ALL.into_iter().filter(|scope| self.has(*scope)).map(Scope::as_str).collect();
        f.write_str(&names.join(","))
    }
}

/// The caller of an operation: the name of its token, the person that the token belongs to, and its scopes.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the token; none for who has none.
    name: Option<Arc<str>>,
    person: PersonId,
    scopes: Scopes,
}

impl Caller {
    /// A caller with a token.
    pub fn new(name: Arc<str>, person: PersonId, scopes: Scopes) -> Self {
        Self { name: Some(name), person, scopes }
    }

    /// A caller without a token.
    pub fn unknown() -> Self {
        Self { name: None, person: PersonId::owner(), scopes: Scopes::NONE }
    }

    /// A caller in the same process, who may do everything.
    pub fn owner() -> Self {
        Self::new("owner".into(), PersonId::owner(), Scopes::ALL)
    }

    /// The person that it acts for.
    pub fn person(&self) -> &PersonId {
        &self.person
    }

    /// The name of its token; empty without one.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The same caller with one more scope.
    pub fn with(&self, scope: Scope) -> Self {
        let scopes = Scope::ALL.into_iter().filter(|other| *other == scope || self.may(*other)).collect();
        Self { scopes, ..self.clone() }
    }

    /// Whether it may do this.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.has(scope)
    }

    /// Refuses a caller without a token (401) or without this scope (403).
    pub fn needs(&self, scope: Scope) -> Result<(), ApiError> {
        self.is_known()?;
        if self.may(scope) {
            return Ok(());
        }
        let detail = format!(
            "this needs the scope `{scope}`, and the token has only `{}`; create another with polis token new --scope",
            self.scopes
        );
        Err(ApiError::new(403, "missing_scope", detail))
    }

    /// Refuses a caller without a token.
    pub fn is_known(&self) -> Result<(), ApiError> {
        if self.name.is_some() {
            return Ok(());
        }
        let detail = "send a token as `Authorization: Bearer …`; the first one is in the file `token` of the data directory";
        Err(ApiError::new(401, "unauthorized", detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_written_as_they_are_read() {
        for text in ["read", "read,send", "approve,admin", "read,send,approve,admin,everyone"] {
            assert_eq!(text.parse::<Scopes>().unwrap().to_string(), text);
        }
        assert_eq!("send, read".parse::<Scopes>().unwrap().to_string(), "read,send");
        assert_eq!("read,write".parse::<Scopes>(), Err(BadScope("write".to_owned())));
        assert!("".parse::<Scopes>().is_err());
        assert_eq!(Scope::ALL.into_iter().collect::<Scopes>(), Scopes::ALL);
    }
}
