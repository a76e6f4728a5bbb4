//! Keys that come from a file, a program or a cloud. They are read when a request needs them and kept for the process; a key that
//! expires or that the vendor refuses is read again.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use polis_http::HttpClient;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::ApiKey;
use crate::aws::{self, AwsCredentials};
use crate::google::{self, GoogleCredentials};
use crate::login::{LoginError, Proof, Secret};

/// How long a program may take: some ask the person for a password.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest output of a program, and longest file, in bytes. A token of a cloud has a few thousand.
const MAX_BYTES: u64 = 64 << 10;

/// Longest message of a program that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Where a key comes from, if not from a variable.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The content of a file.
    File(KeyFile),
    /// What a program prints.
    Command(KeyCommand),
    /// The credentials of an account at Amazon.
    Aws(AwsCredentials),
    /// The credentials of an account at Google Cloud.
    Google(GoogleCredentials),
}

/// A file with a key.
#[derive(Clone)]
pub struct KeyFile {
    /// Where it is.
    pub path: PathBuf,
    /// Decides before each reading whether it may be used.
    pub guard: Option<CommandGuard>,
}

impl From<PathBuf> for KeyFile {
    fn from(path: PathBuf) -> Self {
        Self { path, guard: None }
    }
}

impl PartialEq for KeyFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for KeyFile {}

/// A program that prints a key.
#[derive(Clone)]
pub struct KeyCommand {
    /// The program and its arguments, as they are: no shell reads them.
    pub words: Vec<String>,
    /// Where it runs; none is the working directory.
    pub folder: Option<PathBuf>,
    /// The environment variables that it gets; none is all of them.
    pub environment: Option<&'static [&'static str]>,
    /// Decides before each start whether it may run.
    pub guard: Option<CommandGuard>,
}

/// Refuses a program or a file with a reason.
pub type CommandGuard = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

impl PartialEq for KeyCommand {
    fn eq(&self, other: &Self) -> bool {
        (&self.words, &self.folder) == (&other.words, &other.folder)
    }
}

impl Eq for KeyCommand {}

impl KeySource {
    /// Reads the secret. An error says what to check and does not hold the secret.
    pub(crate) async fn read(&self, http: &HttpClient) -> Result<Secret, LoginError> {
        let text = match self {
            Self::Aws(credentials) => return credentials.read(http).await,
            Self::Google(credentials) => return credentials.read(http).await,
            Self::File(_) | Self::Command(_) => self.text().await.map_err(LoginError::Refused)?,
        };
        // Programs of clouds print what they have as JSON, and their files hold it so.
        if let Some(keys) = aws::keys_in(&text) {
            return Ok(keys);
        }
        if let Some(token) = google::token_of(&text, http).await {
            return token;
        }
        let key = ApiKey::new(&text).map_err(|bad| LoginError::Refused(format!("{self}: {bad}")))?;
        Ok(Secret::new(Proof::Key(key)))
    }

    /// What its file holds or its program prints.
    async fn text(&self) -> Result<String, String> {
        let text = match self {
            Self::File(file) => {
                check(file.guard.as_ref()).await.map_err(|reason| format!("{self} is not read: {reason}"))?;
                read_file(file.path.clone()).await.map_err(|error| format!("{self} cannot be read: {error}"))?
            }
            Self::Command(command) => command.run().await.map_err(|reason| format!("{self} {reason}"))?,
            Self::Aws(_) | Self::Google(_) => Vec::new(),
        };
        String::from_utf8(text).map_err(|_| format!("{self} gives something that is not text"))
    }
}

/// Asks a guard, which may read files.
async fn check(guard: Option<&CommandGuard>) -> Result<(), String> {
    let Some(guard) = guard.cloned() else { return Ok(()) };
    tokio::task::spawn_blocking(move || guard()).await.map_err(|error| error.to_string())?
}

async fn read_file(path: PathBuf) -> io::Result<Vec<u8>> {
    let read = move || {
        let mut bytes = Vec::new();
        if !std::fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        std::fs::File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

impl KeyCommand {
    async fn run(&self) -> Result<Vec<u8>, String> {
        check(self.guard.as_ref()).await.map_err(|reason| format!("is not run: {reason}"))?;
        let [program, arguments @ ..] = &self.words[..] else { return Err("names no program".to_owned()) };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(names) = self.environment {
            command.env_clear().envs(names.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = tokio::time::timeout(TIMEOUT, async {
            let (printed, said) = tokio::join!(read_start(stdout), read_start(stderr));
            Ok::<_, io::Error>((printed?, said?, child.wait().await?))
        });
        match ended.await {
            Err(_) => Err(format!("did not end within {} s", TIMEOUT.as_secs())),
            Ok(Err(error)) => Err(format!("failed: {error}")),
            Ok(Ok((printed, _, status))) if status.success() => Ok(printed),
            Ok(Ok((_, said, status))) => {
                let said = String::from_utf8_lossy(&said);
                let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
                let said: String = said.chars().take(MAX_MESSAGE_CHARS).collect();
                Err(format!("failed ({status}){}{said}", if said.is_empty() { "" } else { ": " }))
            }
        }
    }
}

/// What a program writes, up to the limit; the rest is not read, and the program notices.
async fn read_start(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(MAX_BYTES).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Names the file or the program. Arguments are left out, because they may contain a password.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "the key file {}", file.path.display()),
            Self::Command(command) => {
                write!(f, "the key command `{}`", command.words.first().map(String::as_str).unwrap_or_default())
            }
            Self::Aws(credentials) => write!(f, "{credentials}"),
            Self::Google(credentials) => write!(f, "{credentials}"),
        }
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySource({self})")
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> KeySource {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        KeySource::Command(KeyCommand { words, folder: None, environment: None, guard: None })
    }

    async fn key(source: &KeySource) -> Result<String, String> {
        match source.read(&HttpClient::default()).await {
            Ok(Secret { proof: Proof::Key(key), .. }) => Ok(key.plain().to_str().unwrap().to_owned()),
            Ok(Secret { proof: Proof::Aws(keys), .. }) => Ok(keys.access_key),
            Err(LoginError::Refused(reason) | LoginError::Failed(reason)) => Err(reason),
        }
    }

    #[tokio::test]
    async fn a_program_prints_a_key_and_no_shell_reads_its_arguments() {
        assert_eq!(key(&command(&["printf", "%s\n", "sk-$HOME;x"])).await, Ok("sk-$HOME;x".to_owned()));
        let exported = r#"{"Version": 1, "AccessKeyId": "AK", "SecretAccessKey": "s"}"#;
        assert_eq!(key(&command(&["echo", exported])).await, Ok("AK".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), " sk-file\n").unwrap();
        assert_eq!(key(&KeySource::File(folder.path().join("key").into())).await, Ok("sk-file".to_owned()));
        let here = KeyCommand {
            words: vec!["cat".to_owned(), "key".to_owned()],
            folder: Some(folder.path().to_owned()),
            environment: None,
            guard: None,
        };
        assert_eq!(key(&KeySource::Command(here.clone())).await, Ok("sk-file".to_owned()));
        let words = ["sh", "-c", "echo [$CARGO_MANIFEST_DIR]"].map(str::to_owned).to_vec();
        let bare = KeyCommand { words, environment: Some(&["PATH"]), ..here.clone() };
        assert_eq!(
            key(&KeySource::Command(bare)).await,
            Ok("[]".to_owned()),
            "the variables that are not listed are not given"
        );
        let guard: CommandGuard = Arc::new(|| Err("it has changed".to_owned()));
        let refused = key(&KeySource::Command(KeyCommand { guard: Some(guard), ..here })).await.unwrap_err();
        assert_eq!(refused, "the key command `cat` is not run: it has changed");
    }

    #[tokio::test]
    async fn a_source_without_a_key_says_which_one_it_is_and_why() {
        for (source, want) in [
            (
                command(&["sh", "-c", "echo please log in >&2; exit 3"]),
                "the key command `sh` failed (exit status: 3): please log in",
            ),
            (command(&["/no/such/program", "secret"]), "the key command `/no/such/program` cannot be started"),
            (command(&["true"]), "the key command `true`: the key is empty"),
            (command(&["echo", "two words"]), "the key command `echo`: the key is empty or contains characters"),
            (KeySource::File(PathBuf::from("/no/such/file").into()), "the key file /no/such/file cannot be read"),
        ] {
            let error = key(&source).await.unwrap_err();
            assert!(error.starts_with(want) && !error.contains("secret"), "{error}");
        }
    }
}
