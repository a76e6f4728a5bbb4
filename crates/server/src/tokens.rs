//! Access tokens: the owner's, and further ones with fewer rights, of which only hashes are stored.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use polis_domain::PersonId;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};

use crate::caller::{Caller, Scopes};

/// The name of the token that the data directory begins with.
const OWNER: &str = "owner";

/// Most further tokens.
const MAX_TOKENS: usize = 100;

/// How long a running server may still accept a revoked token.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// An access token. It is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// Takes a secret as it stands in its file; none when it is too short to be one.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let plain = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_graphic());
        plain.then(|| Self(text.into()))
    }

    /// A new one out of random bits.
    pub fn of_bits(bits: [u8; 32]) -> Self {
        Self(hex(&bits).into())
    }

    /// The secret itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// What is kept of a secret. It cannot be turned back into one: secrets are random and long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    fn of(secret: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
        Self(hash)
    }

    fn read(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, two) in hash.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Signs for the holder of the secret.
    pub(crate) fn key(&self) -> ring::hmac::Key {
        ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.0)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A further token, as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// What it is called.
    pub name: String,
    /// What it may do, such as `read,send`.
    pub scopes: String,
    /// The person that it belongs to; one of the token's name if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// The hash of the secret.
    sha256: String,
}

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        error: io::Error,
    },
    /// It is not what this program writes.
    #[error("{} is not a list of tokens ({what}); delete it, and create the tokens again", path.display())]
    Strange {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There is one of that name.
    #[error("a token called `{0}` already exists; choose another name, or revoke it first")]
    Taken(String),
    /// There is none of that name.
    #[error("there is no token called `{0}`; see polis token list")]
    Unknown(String),
    /// Not a name.
    #[error("`{0}` is not a valid name of a token or a person; use 1 to 64 letters, digits, - and _, and not `owner`")]
    BadName(String),
    /// Enough is enough.
    #[error("there are already {MAX_TOKENS} tokens, the maximum; revoke some")]
    TooMany,
}

impl TokenFileError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Strange { .. } => "bad_token_file",
            Self::Taken(_) => "token_exists",
            Self::Unknown(_) => "unknown_token",
            Self::BadName(_) => "bad_token_name",
            Self::TooMany => "too_many_tokens",
        }
    }
}

/// The file with the further tokens of a data directory.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// The file at this path, which need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The tokens, oldest first.
    pub fn list(&self) -> Result<Vec<StoredToken>, TokenFileError> {
        let strange = |what: String| TokenFileError::Strange { path: self.0.clone(), what };
        // A pipe would be waited for, and a device never ends.
        if fs::metadata(&self.0).is_ok_and(|found| !found.is_file()) {
            return Err(strange("it is not a file".to_owned()));
        }
        let text = match fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(TokenFileError::Io { path: self.0.clone(), error }),
        };
        let tokens: Vec<StoredToken> = serde_json::from_str(&text).map_err(|error| strange(error.to_string()))?;
        match tokens.iter().find(|token| token.accepted().is_none()) {
            Some(token) => Err(strange(format!("the one called `{}`", token.name))),
            None => Ok(tokens),
        }
    }

    /// Keeps a new one.
    pub fn add(&self, name: &str, person: Option<&str>, scopes: Scopes, token: &Token) -> Result<(), TokenFileError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && name.bytes().all(plain);
        if name == OWNER || !is_name(name) {
            return Err(TokenFileError::BadName(name.to_owned()));
        }
        if let Some(person) = person.filter(|person| !is_name(person)) {
            return Err(TokenFileError::BadName(person.to_owned()));
        }
        let mut tokens = self.list()?;
        if tokens.iter().any(|kept| kept.name == name) {
            return Err(TokenFileError::Taken(name.to_owned()));
        }
        if tokens.len() >= MAX_TOKENS {
            return Err(TokenFileError::TooMany);
        }
        let sha256 = hex(&Hash::of(token.as_str()).0);
        let person = person.map(str::to_owned);
        tokens.push(StoredToken { name: name.to_owned(), scopes: scopes.to_string(), person, sha256 });
        self.write(&tokens)
    }

    /// Forgets one; a running server notices within a second.
    pub fn revoke(&self, name: &str) -> Result<(), TokenFileError> {
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Err(TokenFileError::Unknown(name.to_owned()));
        }
        self.write(&tokens)
    }

    fn write(&self, tokens: &[StoredToken]) -> Result<(), TokenFileError> {
        let io = |error| TokenFileError::Io { path: self.0.clone(), error };
        let text = serde_json::to_string_pretty(tokens).map_err(|error| io(error.into()))?;
        write_private(&self.0, &text).map_err(io)
    }

    fn stamp(&self) -> Option<(SystemTime, u64)> {
        let metadata = fs::metadata(&self.0).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }
}

impl StoredToken {
    /// The person that it belongs to.
    pub fn person(&self) -> &str {
        self.person.as_deref().unwrap_or(&self.name)
    }

    fn accepted(&self) -> Option<AcceptedToken> {
        let (hash, scopes) = (Hash::read(&self.sha256)?, self.scopes.parse().ok()?);
        let person = PersonId::from(self.person());
        Some(AcceptedToken { name: self.name.as_str().into(), person, hash, scopes })
    }
}

/// Where [`write_private`] writes a file before it takes its place.
pub fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

/// Writes a secret: aside and renamed, so that a crash leaves no half of it, and readable by its owner only.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = unfinished(path);
    // One that a crash left behind could have been opened by somebody since.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

/// A token that is accepted.
#[derive(Clone)]
pub(crate) struct AcceptedToken {
    pub(crate) name: Arc<str>,
    pub(crate) person: PersonId,
    pub(crate) hash: Hash,
    pub(crate) scopes: Scopes,
}

impl AcceptedToken {
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(self.name.clone(), self.person.clone(), self.scopes)
    }

    /// Whether both are one token: another may have got its name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.hash.0.ct_eq(&other.hash.0).into()
    }

    pub(crate) fn is_owner(&self) -> bool {
        &*self.name == OWNER
    }
}

/// All tokens that are accepted.
pub(crate) struct Tokens {
    owner: AcceptedToken,
    file: Option<TokenFile>,
    further: Mutex<TokenFileCache>,
}

#[derive(Default)]
struct TokenFileCache {
    known: Arc<[AcceptedToken]>,
    stamp: Option<(SystemTime, u64)>,
    looked: Option<Instant>,
}

impl Tokens {
    pub(crate) fn new(owner: &Token, file: Option<TokenFile>) -> Self {
        let person = PersonId::owner();
        let owner = AcceptedToken { name: OWNER.into(), person, hash: Hash::of(owner.as_str()), scopes: Scopes::ALL };
        Self { owner, file, further: Mutex::default() }
    }

    /// Finds the token with this secret, in constant time.
    pub(crate) fn find(&self, secret: &str) -> Option<AcceptedToken> {
        let given = Hash::of(secret);
        let further = self.stored_tokens();
        let mut found = None;
        for known in std::iter::once(&self.owner).chain(further.iter()) {
            let is: Choice = known.hash.0.ct_eq(&given.0);
            if is.into() {
                found = Some(known);
            }
        }
        found.cloned()
    }

    /// The one of this name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<AcceptedToken> {
        if name == OWNER {
            return Some(self.owner.clone());
        }
        self.stored_tokens().iter().find(|known| &*known.name == name).cloned()
    }

    /// The further ones as their file has them now. A file that cannot be read opens nothing.
    fn stored_tokens(&self) -> Arc<[AcceptedToken]> {
        let Some(file) = &self.file else { return Arc::default() };
        let mut further = self.further.lock().unwrap_or_else(PoisonError::into_inner);
        if further.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN) {
            further.looked = Some(Instant::now());
            let stamp = file.stamp();
            if stamp != further.stamp {
                further.known = match file.list() {
                    Ok(tokens) => tokens.iter().filter_map(StoredToken::accepted).collect(),
                    Err(error) => {
                        tracing::error!(%error, "only the owner's token is accepted");
                        Arc::default()
                    }
                };
                further.stamp = stamp;
            }
        }
        further.known.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_shows_in_no_debug_output_and_is_long() {
        let token = Token::new(&format!(" {SECRET}\n")).unwrap();
        assert_eq!(format!("{token:?}"), "Token(***)");
        let tokens = Tokens::new(&token, None);
        assert!(tokens.find(SECRET).is_some_and(|known| known.is_owner()));
        assert!(tokens.find("0123456789abcdef0123456789abcdee").is_none());
        assert_eq!(Token::new("short"), None);
    }

    #[test]
    fn further_tokens_are_kept_as_hashes_for_their_owner_alone_and_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let file = TokenFile::new(&path);
        assert_eq!(file.list().unwrap(), []);
        let token = Token::of_bits([7; 32]);
        file.add("ci", None, "read,send".parse().unwrap(), &token).unwrap();
        assert_eq!(file.add("ci", None, Scopes::ALL, &token).unwrap_err().code(), "token_exists");
        for bad in ["", "owner", "a b", "../x"] {
            assert_eq!(file.add(bad, None, Scopes::ALL, &token).unwrap_err().code(), "bad_token_name");
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(token.as_str()) && text.contains("read,send"), "{text}");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
        let tokens = Tokens::new(&Token::new(SECRET).unwrap(), Some(file.clone()));
        let known = tokens.find(token.as_str()).unwrap();
        assert!(!known.is_owner() && known.scopes.to_string() == "read,send");
        file.revoke("ci").unwrap();
        assert_eq!(file.revoke("ci").unwrap_err().code(), "unknown_token");
        tokens.further.lock().unwrap().looked = None;
        assert!(tokens.find(token.as_str()).is_none());
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(file.list().unwrap_err().code(), "bad_token_file");
    }
}
