//! Access tokens: the owner's, and further ones with fewer rights, of which only hashes are stored.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polis_domain::PersonId;
use polis_ports::{DocumentError, Documents};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConstantTimeEq};
use tokio::time::timeout;

use crate::caller::{Caller, Scopes};

/// The name of the token that a store begins with.
const OWNER: &str = "owner";

/// Most further tokens.
const MAX_TOKENS: usize = 100;

/// How long a running server may still accept a revoked token.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How long a request waits for the list.
const LONGEST_READ: Duration = Duration::from_secs(2);

/// How long tokens are accepted that cannot be read again.
const MAX_AGE: Duration = Duration::from_secs(30);

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

/// A further token, as its list has it.
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

/// Why a list of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenListError {
    /// It cannot be read or written.
    #[error("the tokens cannot be read or written: {0}")]
    Failed(#[from] DocumentError),
    /// It is not what this program writes.
    #[error("{name} is not a list of tokens ({what}); delete it, and create the tokens again")]
    Strange {
        /// The document.
        name: &'static str,
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

impl TokenListError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed(_) | Self::Strange { .. } => "bad_token_file",
            Self::Taken(_) => "token_exists",
            Self::Unknown(_) => "unknown_token",
            Self::BadName(_) => "bad_token_name",
            Self::TooMany => "too_many_tokens",
        }
    }
}

/// The document with the hash of the owner's token, where nodes share it.
const OWNERS: &str = "owner.json";

/// The tokens of a store.
#[derive(Clone)]
pub struct TokenList {
    documents: Arc<dyn Documents>,
    is_shared: bool,
}

/// The owner's token, as its document has it.
#[derive(Serialize, Deserialize)]
struct StoredOwner {
    sha256: String,
}

impl TokenList {
    /// The document with the further tokens.
    pub const DOCUMENT: &str = "tokens.json";

    /// The further tokens of a data directory, which has a token of its own for the owner.
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self { documents, is_shared: false }
    }

    /// The tokens that all nodes of a store accept, the owner's included.
    pub fn shared(documents: Arc<dyn Documents>) -> Self {
        Self { documents, is_shared: true }
    }

    /// The further tokens, oldest first.
    pub async fn list(&self) -> Result<Vec<StoredToken>, TokenListError> {
        Ok(self.read().await?.0)
    }

    async fn read(&self) -> Result<(Vec<StoredToken>, Option<Vec<u8>>), TokenListError> {
        let strange = |what: String| TokenListError::Strange { name: Self::DOCUMENT, what };
        let Some(text) = self.documents.read(Self::DOCUMENT).await? else { return Ok((Vec::new(), None)) };
        let tokens: Vec<StoredToken> = serde_json::from_slice(&text).map_err(|error| strange(error.to_string()))?;
        match tokens.iter().find(|token| token.accepted().is_none()) {
            Some(token) => Err(strange(format!("the one called `{}`", token.name))),
            None => Ok((tokens, Some(text))),
        }
    }

    /// Changes the further tokens. If another process has changed them meanwhile, `change` is made again.
    async fn change(&self, change: impl Fn(&mut Vec<StoredToken>) -> Result<(), TokenListError>) -> Result<(), TokenListError> {
        loop {
            let (mut tokens, before) = self.read().await?;
            change(&mut tokens)?;
            let text = serde_json::to_string_pretty(&tokens).map_err(|error| DocumentError::Failed(error.to_string()))? + "\n";
            match self.documents.replace(Self::DOCUMENT, before.as_deref(), Some(text.as_bytes())).await {
                Err(DocumentError::Changed(_)) => {}
                done => return Ok(done?),
            }
        }
    }

    /// Adds a token.
    pub async fn add(&self, name: &str, person: Option<&str>, scopes: Scopes, token: &Token) -> Result<(), TokenListError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_name = |name: &str| !name.is_empty() && name.len() <= 64 && name.bytes().all(plain);
        if name == OWNER || !is_name(name) {
            return Err(TokenListError::BadName(name.to_owned()));
        }
        if let Some(person) = person.filter(|person| !is_name(person)) {
            return Err(TokenListError::BadName(person.to_owned()));
        }
        let sha256 = hex(&Hash::of(token.as_str()).0);
        let person = person.map(str::to_owned);
        let new = StoredToken { name: name.to_owned(), scopes: scopes.to_string(), person, sha256 };
        self.change(|tokens| {
            if tokens.iter().any(|kept| kept.name == name) {
                return Err(TokenListError::Taken(name.to_owned()));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenListError::TooMany);
            }
            tokens.push(new.clone());
            Ok(())
        })
        .await
    }

    /// Removes a token; running servers notice within a second. Where nodes share the owner's, `owner` removes that one.
    pub async fn revoke(&self, name: &str) -> Result<(), TokenListError> {
        if self.is_shared && name == OWNER {
            let owner = self.documents.read(OWNERS).await?.ok_or_else(|| TokenListError::Unknown(name.to_owned()))?;
            return Ok(self.documents.replace(OWNERS, Some(&owner), None).await?);
        }
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() == before { Err(TokenListError::Unknown(name.to_owned())) } else { Ok(()) }
        })
        .await
    }

    /// Whether the owner has a token that nodes share.
    pub async fn has_owner(&self) -> Result<bool, TokenListError> {
        Ok(self.owner().await?.is_some())
    }

    /// Makes a token the owner's on all nodes, unless the owner has one. Gives whether it is the owner's now.
    pub async fn claim(&self, token: &Token) -> Result<bool, TokenListError> {
        let hash = Hash::of(token.as_str());
        let stored = StoredOwner { sha256: hex(&hash.0) };
        let text = serde_json::to_vec(&stored).map_err(|error| DocumentError::Failed(error.to_string()))?;
        match self.documents.replace(OWNERS, None, Some(&text)).await {
            Ok(()) => Ok(true),
            Err(DocumentError::Changed(_)) => Ok(self.owner().await?.is_some_and(|owner| owner.hash.0.ct_eq(&hash.0).into())),
            Err(error) => Err(error.into()),
        }
    }

    async fn owner(&self) -> Result<Option<AcceptedToken>, TokenListError> {
        let Some(text) = self.documents.read(OWNERS).await? else { return Ok(None) };
        let stored: Option<StoredOwner> = serde_json::from_slice(&text).ok();
        let hash = stored.and_then(|stored| Hash::read(&stored.sha256));
        let strange = || TokenListError::Strange { name: OWNERS, what: "no hash of the owner's".to_owned() };
        hash.map(|hash| Some(AcceptedToken::owner(hash))).ok_or_else(strange)
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

/// A token that is accepted.
#[derive(Clone)]
pub(crate) struct AcceptedToken {
    pub(crate) name: Arc<str>,
    pub(crate) person: PersonId,
    pub(crate) hash: Hash,
    pub(crate) scopes: Scopes,
}

impl AcceptedToken {
    fn owner(hash: Hash) -> Self {
        Self { name: OWNER.into(), person: PersonId::owner(), hash, scopes: Scopes::ALL }
    }

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
    list: Option<TokenList>,
    accepted: Mutex<Accepted>,
    reading: tokio::sync::Mutex<()>,
}

/// What was read of the list.
struct Accepted {
    owner: Option<AcceptedToken>,
    further: Arc<[AcceptedToken]>,
    tried: Option<Instant>,
    read: Option<Instant>,
}

impl Tokens {
    /// The owner's token of this node, which counts unless nodes share one, and further ones.
    pub(crate) fn new(owner: &Token, list: Option<TokenList>) -> Self {
        let own = AcceptedToken::owner(Hash::of(owner.as_str()));
        let owner = list.as_ref().is_none_or(|list| !list.is_shared).then_some(own);
        let accepted = Mutex::new(Accepted { owner, further: Arc::default(), tried: None, read: None });
        Self { list, accepted, reading: Default::default() }
    }

    /// Reads the list again when it is time. One caller reads it; the others go on with what was read before.
    ///
    /// Gives whether the tokens are known: those that nodes share may be out of reach.
    pub(crate) async fn refresh(&self) -> bool {
        let Some(list) = &self.list else { return true };
        let is_due = || self.lock().tried.is_none_or(|tried| tried.elapsed() >= LOOK_AGAIN);
        if is_due() {
            let is_first = self.lock().tried.is_none();
            let reading = if is_first { Some(self.reading.lock().await) } else { self.reading.try_lock().ok() };
            if reading.is_some() && is_due() {
                self.read(list).await;
            }
        }
        !list.is_shared || self.lock().read.is_some_and(|read| read.elapsed() < MAX_AGE)
    }

    /// Without the list nothing in it is accepted, at the latest when what was read before is too old.
    async fn read(&self, list: &TokenList) {
        let read = async {
            let further = list.list().await?;
            Ok((further, if list.is_shared { list.owner().await? } else { None }))
        };
        let late = |_| Err(DocumentError::Failed(format!("no answer within {LONGEST_READ:?}")).into());
        let read: Result<_, TokenListError> = timeout(LONGEST_READ, read).await.unwrap_or_else(late);
        let mut accepted = self.lock();
        accepted.tried = Some(Instant::now());
        match read {
            Ok((further, owner)) => {
                accepted.further = further.iter().filter_map(StoredToken::accepted).collect();
                accepted.read = accepted.tried;
                if list.is_shared {
                    accepted.owner = owner;
                }
            }
            Err(error) => {
                let is_young = accepted.read.is_some_and(|read| read.elapsed() < MAX_AGE);
                if !(is_young && matches!(error, TokenListError::Failed(_))) {
                    tracing::error!(%error, "only the owner's token is accepted");
                    accepted.further = Arc::default();
                }
            }
        }
    }

    /// Finds the token with this secret, in constant time.
    pub(crate) fn find(&self, secret: &str) -> Option<AcceptedToken> {
        let given = Hash::of(secret);
        let mut found = None;
        self.each(|known| {
            let is: Choice = known.hash.0.ct_eq(&given.0);
            if is.into() {
                found = Some(known.clone());
            }
        });
        found
    }

    /// The one of this name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<AcceptedToken> {
        let mut found = None;
        self.each(|known| {
            if &*known.name == name {
                found = Some(known.clone());
            }
        });
        found
    }

    fn each(&self, look: impl FnMut(&AcceptedToken)) {
        let (owner, further) = {
            let accepted = self.lock();
            (accepted.owner.clone(), accepted.further.clone())
        };
        owner.iter().chain(further.iter()).for_each(look);
    }

    fn lock(&self) -> MutexGuard<'_, Accepted> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use polis_testkit::MemoryDocuments;

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

    /// Documents that may be out of reach.
    #[derive(Default)]
    struct Shelf(MemoryDocuments, std::sync::atomic::AtomicBool);

    #[async_trait::async_trait]
    impl Documents for Shelf {
        async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, DocumentError> {
            match self.1.load(std::sync::atomic::Ordering::Relaxed) {
                true => Err(DocumentError::Failed("out of reach".to_owned())),
                false => {
                    let found = self.0.read(name).await;
                    // Others may write now.
                    tokio::task::yield_now().await;
                    found
                }
            }
        }

        async fn names(&self, folder: &str) -> Result<Vec<String>, DocumentError> {
            self.0.names(folder).await
        }

        async fn replace(&self, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), DocumentError> {
            self.0.replace(name, old, new).await
        }
    }

    fn again(tokens: &Tokens) {
        tokens.lock().tried = None;
    }

    #[tokio::test]
    async fn further_tokens_are_stored_as_hashes_and_revoked() {
        let documents = MemoryDocuments::default();
        let list = TokenList::new(Arc::new(documents.clone()));
        assert_eq!(list.list().await.unwrap(), []);
        let token = Token::of_bits([7; 32]);
        list.add("ci", None, "read,send".parse().unwrap(), &token).await.unwrap();
        assert_eq!(list.add("ci", None, Scopes::ALL, &token).await.unwrap_err().code(), "token_exists");
        for bad in ["", "owner", "a b", "../x"] {
            assert_eq!(list.add(bad, None, Scopes::ALL, &token).await.unwrap_err().code(), "bad_token_name");
        }
        let text = String::from_utf8(documents.read(TokenList::DOCUMENT).await.unwrap().unwrap()).unwrap();
        assert!(!text.contains(token.as_str()) && text.contains("read,send"), "{text}");
        let tokens = Tokens::new(&Token::new(SECRET).unwrap(), Some(list.clone()));
        assert!(tokens.refresh().await);
        let known = tokens.find(token.as_str()).unwrap();
        assert!(!known.is_owner() && known.scopes.to_string() == "read,send");
        list.revoke("ci").await.unwrap();
        assert_eq!(list.revoke("ci").await.unwrap_err().code(), "unknown_token");
        assert_eq!(list.revoke("owner").await.unwrap_err().code(), "unknown_token");
        again(&tokens);
        tokens.refresh().await;
        assert!(tokens.find(token.as_str()).is_none());
        documents.replace(TokenList::DOCUMENT, Some(b"[]\n"), Some(b"nonsense")).await.unwrap();
        assert_eq!(list.list().await.unwrap_err().code(), "bad_token_file");
        again(&tokens);
        assert!(tokens.refresh().await && tokens.find(SECRET).is_some(), "the owner's token does not need the list");
    }

    #[tokio::test]
    async fn of_two_that_change_the_list_at_the_same_time_both_do() {
        let list = TokenList::new(Arc::new(Shelf::default()));
        let add = async |name: &str| list.add(name, None, Scopes::ALL, &Token::of_bits([7; 32])).await.unwrap();
        tokio::join!(add("a"), add("b"), add("c"));
        assert_eq!(list.list().await.unwrap().len(), 3);
    }

    #[tokio::test]
    async fn nodes_share_one_token_of_the_owner_and_a_revoked_one_opens_none() {
        let shelf = Arc::new(Shelf::default());
        let list = TokenList::shared(shelf.clone());
        let [first, second] = [[1; 32], [2; 32]].map(Token::of_bits);
        assert!(!list.has_owner().await.unwrap());
        assert!(list.claim(&first).await.unwrap() && list.claim(&first).await.unwrap());
        assert!(!list.claim(&second).await.unwrap(), "the owner has one");
        let text = String::from_utf8(shelf.read(OWNERS).await.unwrap().unwrap()).unwrap();
        assert!(!text.contains(first.as_str()), "{text}");
        // What a node has itself does not count.
        let node = Tokens::new(&second, Some(list.clone()));
        assert!(node.find(second.as_str()).is_none());
        assert!(node.refresh().await);
        assert!(node.find(first.as_str()).is_some_and(|known| known.is_owner()) && node.find(second.as_str()).is_none());
        list.revoke("owner").await.unwrap();
        again(&node);
        assert!(node.refresh().await && node.find(first.as_str()).is_none());
        assert!(list.claim(&second).await.unwrap());
        again(&node);
        assert!(node.refresh().await && node.find(second.as_str()).is_some());
    }

    #[tokio::test]
    async fn tokens_out_of_reach_are_accepted_for_a_while_and_then_unknown() {
        let shelf = Arc::new(Shelf::default());
        let list = TokenList::shared(shelf.clone());
        let owner = Token::of_bits([1; 32]);
        list.claim(&owner).await.unwrap();
        let node = Tokens::new(&owner, Some(list));
        node.refresh().await;
        shelf.1.store(true, std::sync::atomic::Ordering::Relaxed);
        again(&node);
        assert!(node.refresh().await && node.find(owner.as_str()).is_some());
        node.lock().read = Instant::now().checked_sub(MAX_AGE);
        again(&node);
        assert!(!node.refresh().await);
    }
}
