//! Workspace trust: files of a folder that start programs, send keys, set rules or instruct agents count only once the user has
//! trusted exactly their content. What was decided is kept outside the folder; the content is checked again at each use.

mod ask;
mod contents;
mod data;
mod loaded_code;
mod show;
mod store;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polis_engine::SystemClock;
use polis_ports::{Clock, FileGuard};
use serde_json::Value;

use crate::cli::{Cli, Command};
use crate::error::CliError;
use crate::out;
pub(crate) use ask::{agreed, check, is_terminal, present};
pub(crate) use contents::Contents;
pub(crate) use contents::digest_of_file;
use contents::{Governed, digest, key};
pub(crate) use data::DataOwner;
pub(crate) use show::{changes, items, visible};
pub(crate) use store::{FolderTrust, Stamp, TrustStore, create_private, user_folder};
pub(crate) use variables::is_secret;

/// The default data directory, below the working directory.
pub(crate) const DATA: &str = ".polis";

/// The code for content that was never trusted, and the one for content that is not what was trusted.
pub(crate) const UNTRUSTED: &str = "untrusted_folder";
pub(crate) const CHANGED: &str = "changed_since_trusted";

/// What is trusted in this process. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Trust(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Nothing is checked: `POLIS_TRUST=all`.
    everything: bool,
    /// The working directory.
    folder: PathBuf,
    /// The user's own configuration folder, which always counts.
    user: Option<PathBuf>,
    store: Option<TrustStore>,
    /// The contents of the folder at the start.
    contents: Contents,
    /// What `--trust` trusts, for this run.
    this_run: BTreeMap<String, String>,
    cache: Mutex<StoreCache>,
    data: DataOwner,
}

/// The store as it was last read, and what was reported since.
#[derive(Debug, Default)]
struct StoreCache {
    stamp: Stamp,
    folder: Option<FolderTrust>,
    reported: BTreeSet<(String, String)>,
    /// The files with settings that count in this process, with their digests.
    used: Vec<(String, String)>,
}

/// How the command line asks for trust.
struct TrustOptions {
    everything: bool,
    this_run: bool,
    /// Whether the command would use the files of the folder.
    uses: bool,
}

impl Trust {
    /// Scans the working directory, and asks the person about untrusted files, if there is a person.
    pub(crate) fn open(cli: &Cli, data: &Path) -> Result<Self, CliError> {
        let everything = match std::env::var("POLIS_TRUST").unwrap_or_default().trim() {
            "" => false,
            "all" => true,
            other => {
                let what = format!("POLIS_TRUST: unknown value `{other}`; write all, or unset it");
                return Err(CliError::usage("bad_trust", what));
            }
        };
        // `polis trust` is meant to be remembered.
        let everything = everything && !matches!(cli.command, Command::Trust(_));
        let uses = cli.command.run_options().is_some() && cli.url.as_deref().is_none_or(|url| url.trim().is_empty());
        let options = TrustOptions { everything, this_run: cli.trust, uses };
        let trust = Self::scan(
            &options,
            data,
            cli.data.as_ref().is_some_and(|dir| !dir.as_os_str().is_empty()),
            matches!(cli.command, Command::Serve(_) | Command::Trust(_)),
        )?;
        if matches!(cli.command, Command::Trust(_) | Command::Doctor(_)) {
            return Ok(trust);
        }
        trust.ask_or_report(&options)
    }

    /// For tests of other parts: an empty folder of a user without a home.
    #[cfg(test)]
    pub(crate) fn nothing() -> Self {
        let data = DataOwner::new(Path::new("/nowhere"), Path::new("data"), true);
        let (contents, this_run, cache) = (Contents::default(), BTreeMap::new(), Mutex::default());
        let folder = PathBuf::from("/nowhere");
        Self(Arc::new(Shared { everything: false, folder, user: None, store: None, contents, this_run, cache, data }))
    }

    fn scan(options: &TrustOptions, data: &Path, data_is_named: bool, serves: bool) -> Result<Self, CliError> {
        let here = |error: std::io::Error| CliError::new("bad_folder", format!("the working directory: {error}"));
        let folder = std::env::current_dir().and_then(|folder| folder.canonicalize()).map_err(here)?;
        let user = user_folder();
        let is_users = user.as_ref().and_then(|user| user.canonicalize().ok()).is_some_and(|user| user == folder);
        let store = user.clone().map(TrustStore::new);
        // The settings in a data directory elsewhere come with the directory that the user named.
        let in_folder =
            folder.join(data).canonicalize().ok().and_then(|data| Some(data.strip_prefix(&folder).ok()?.to_owned()));
        let in_folder = in_folder.or_else(|| (!data_is_named).then(|| data.to_owned()));
        let contents = if is_users { Contents::default() } else { Contents::scan(&folder, in_folder.as_deref(), serves) };
        let this_run = if options.this_run { contents.digests() } else { BTreeMap::new() };
        let data = DataOwner::new(&folder, data, data_is_named || options.everything || options.this_run);
        let shared =
            Shared { everything: options.everything, folder, user, store, contents, this_run, cache: Mutex::default(), data };
        let trust = Self(Arc::new(shared));
        if trust.has_anything_to_trust() && !trust.0.everything {
            trust.reread()?;
        }
        Ok(trust)
    }

    /// Whether there is anything to decide about.
    fn has_anything_to_trust(&self) -> bool {
        !self.0.contents.files.is_empty() || self.0.data.is_there()
    }

    /// Asks, or reports what is ignored.
    fn ask_or_report(self, options: &TrustOptions) -> Result<Self, CliError> {
        let (pending, data) = (self.pending(), self.foreign_data());
        if self.0.everything && options.uses && !self.0.contents.files.is_empty() {
            out::note("polis: POLIS_TRUST=all: what lies in this folder is obeyed without a question");
        }
        if self.0.everything || (pending.is_empty() && !data) {
            self.note_used();
            return Ok(self);
        }
        if options.uses && ask::is_terminal() && !self.is_declined() {
            ask::ask(&self)?;
        } else if options.uses && !pending.is_empty() {
            out::note(&self.explanation());
        }
        self.note_used();
        let with_digest = |name: &str| (name.to_owned(), self.0.contents.files[name].digest.clone());
        let pending: Vec<_> = self.pending().into_iter().map(with_digest).collect();
        self.cache().reported.extend(pending);
        Ok(self)
    }

    fn note_used(&self) {
        let settings = self.0.contents.settings().into_iter().map(|(name, _)| name);
        let used = settings.filter(|name| self.is_trusted(name, &self.0.contents.files[*name].digest));
        let used = used.map(|name| (name.to_owned(), self.0.contents.files[name].digest.clone())).collect();
        self.cache().used = used;
    }

    /// The governed files that are not trusted as they are.
    pub(crate) fn pending(&self) -> Vec<&str> {
        if self.0.everything {
            return Vec::new();
        }
        let is_trusted = |name: &str, file: &Governed| self.is_trusted(name, &file.digest);
        self.0.contents.files.iter().filter(|(name, file)| !is_trusted(name, file)).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether another user created the default data directory.
    pub(crate) fn foreign_data(&self) -> bool {
        !self.0.everything && self.0.data.is_foreign(self.0.store.as_ref())
    }

    /// Refuses to open a data directory that another user began.
    pub(crate) fn check_data(&self) -> Result<(), CliError> {
        if !self.foreign_data() {
            return Ok(());
        }
        let place = show::visible(&self.0.folder.display().to_string());
        let message = match self.0.store {
            Some(_) => format!(
                "the data directory {DATA} in {place} was not begun by you: it may hold roles, permissions and work of another user; \
                 look at it and type polis trust, name it with --data {DATA}, or remove it"
            ),
            None => format!(
                "nobody can tell whether the data directory {DATA} in {place} is yours, because HOME is not set; set HOME, or name the \
                 directory with --data {DATA} or POLIS_DATA={DATA}"
            ),
        };
        Err(CliError::usage(UNTRUSTED, message))
    }

    /// Claims the data directory that is about to be created as the user's own.
    pub(crate) fn claim_data(&self) -> Result<(), CliError> {
        self.check_data()?;
        if let Err(error) = self.0.data.claim(self.0.store.as_ref()) {
            out::note(&format!("polis: {error}; the next start will not know that {DATA} is yours"));
        }
        Ok(())
    }

    /// Makes a data directory that the user has just restored the user's own.
    pub(crate) fn own_restored_data(&self) -> Result<(), CliError> {
        self.0.store.as_ref().map_or(Ok(()), |store| self.0.data.accept(store))
    }

    fn is_declined(&self) -> bool {
        let all = self.whole_digest();
        self.cache().folder.as_ref().is_some_and(|folder| folder.declined.as_ref() == Some(&all))
    }

    /// Everything that is asked about, as one digest.
    fn whole_digest(&self) -> String {
        format!("{}{}", self.0.contents.digest(), if self.foreign_data() { "+data" } else { "" })
    }

    fn is_trusted(&self, name: &str, digest: &str) -> bool {
        let by_run = self.0.this_run.get(name).is_some_and(|trusted| trusted == digest);
        by_run
            || self
                .cache()
                .folder
                .as_ref()
                .is_some_and(|folder| folder.files.get(name).is_some_and(|trusted| trusted == digest))
    }

    /// Whether the bytes of a file may be used now. What the user has trusted meanwhile in another terminal counts; what may not be
    /// used is told once.
    pub(crate) fn admits(&self, path: &Path, bytes: &[u8]) -> bool {
        if self.0.everything || self.is_users(path) {
            return true;
        }
        let below = path.strip_prefix(&self.0.folder).unwrap_or(path);
        let Some(name) = key(below) else { return false };
        let digest = digest(bytes);
        if contents::leads_out(&self.0.folder, &self.0.folder.join(below)) {
            if self.cache().reported.insert((name.clone(), digest)) {
                let name = show::visible(&name);
                out::note(&format!(
                    "polis: {name} is a link out of this folder and does not count; put the file here ({UNTRUSTED})"
                ));
            }
            return false;
        }
        // A store that cannot be read trusts nothing.
        let _ = self.reread();
        if self.is_trusted(&name, &digest) {
            return true;
        }
        let was_trusted = self.was_trusted(&name);
        if self.cache().reported.insert((name.clone(), digest)) {
            let (code, what) =
                if was_trusted { (CHANGED, "has changed since you trusted it") } else { (UNTRUSTED, "is not trusted") };
            out::note(&format!(
                "polis: {} {what} and does not count; look at it and type polis trust ({code})",
                show::visible(&name)
            ));
        }
        false
    }

    fn was_trusted(&self, name: &str) -> bool {
        let cache = self.cache();
        self.0.this_run.contains_key(name) || cache.folder.as_ref().is_some_and(|folder| folder.files.contains_key(name))
    }

    fn is_users(&self, path: &Path) -> bool {
        let outside =
            |user: &PathBuf| path.starts_with(user) && !path.components().any(|part| part == std::path::Component::ParentDir);
        self.0.user.as_ref().is_some_and(outside)
    }

    /// The same, for whoever reads files by itself.
    pub(crate) fn guard(&self) -> FileGuard {
        let trust = self.clone();
        FileGuard::new(move |path, bytes| trust.admits(path, bytes))
    }

    /// The text of a file that may be used.
    pub(crate) fn read(&self, path: &Path) -> std::io::Result<Option<String>> {
        // A pipe would be waited for and a device never ends.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(path)?, contents::MAX_BYTES + 1), &mut bytes)?;
        if bytes.len() as u64 > contents::MAX_BYTES {
            return Err(std::io::Error::other(format!("it has more than {} bytes", contents::MAX_BYTES)));
        }
        if !self.admits(path, &bytes) {
            return Ok(None);
        }
        String::from_utf8(bytes).map(Some).map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8"))
    }

    /// The bytes of a governed file as they were at the start, if they are trusted.
    pub(crate) fn trusted_bytes(&self, name: &Path) -> Option<&[u8]> {
        let below = name.strip_prefix(&self.0.folder).unwrap_or(name);
        let name = key(below)?;
        let file = self.0.contents.files.get(&name)?;
        (self.0.everything || self.is_trusted(&name, &file.digest)).then_some(file.bytes.as_deref()).flatten()
    }

    /// Whether a file that settings name may be used as it is now. One outside the folder is the user's.
    pub(crate) fn admits_file(&self, path: &Path) -> bool {
        if !self.is_inside(path) {
            return true;
        }
        // A file that cannot be read is reported where it is needed.
        let Ok(real) = self.0.folder.join(path).canonicalize() else { return true };
        std::fs::read(&real).is_ok_and(|bytes| self.admits(&real, &bytes))
    }

    /// Whether a path of settings lies in the folder, over whatever links.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        let whole = self.0.folder.join(path);
        let real = whole.ancestors().find_map(|part| part.canonicalize().ok());
        whole.starts_with(&self.0.folder) || real.is_some_and(|real| real.starts_with(&self.0.folder))
    }

    /// Whether a file lies in the folder and is governed there.
    pub(crate) fn governs(&self, name: &Path) -> bool {
        let below = name.strip_prefix(&self.0.folder).unwrap_or(name);
        key(below).is_some_and(|name| self.0.contents.files.contains_key(&name))
    }

    /// The first file of what a server's program runs or loads that is not what was trusted, or that was and is gone: in the place
    /// of a script there may be a folder by now, or a link out of here, which the same command runs.
    pub(crate) fn changed_file_of(&self, server: &Value) -> Option<String> {
        let Ok(beside) = loaded_code::beside(&self.0.folder, server) else {
            return Some("the code beside its script is more than polis compares, so it".to_owned());
        };
        // A store that cannot be read trusts nothing.
        let _ = self.reread();
        if let Some(file) = self.revoked_settings() {
            return Some(file);
        }
        let folder = &self.0.folder;
        let named = loaded_code::named_by(folder, server).into_iter().filter_map(|path| path.canonicalize().ok());
        let files = named.filter(|path| path.starts_with(folder)).chain(beside);
        let files: BTreeMap<String, PathBuf> =
            files.filter_map(|path| Some((key(path.strip_prefix(folder).ok()?)?, path))).collect();
        let command = server.to_string();
        let is_named = |name: &str| name.rsplit('/').next().is_some_and(|file| command.contains(file));
        let is_there =
            |name: &str| folder.join(name).canonicalize().is_ok_and(|path| path.starts_with(folder) && path.is_file());
        let mut trusted: Vec<String> = self.0.this_run.keys().cloned().collect();
        trusted.extend(self.cache().folder.iter().flat_map(|folder| folder.files.keys().cloned()));
        let gone = trusted.into_iter().find(|name| is_named(name) && !is_there(name));
        let is_other = |name: &str, path: &Path| digest_of_file(path).is_none_or(|digest| !self.is_trusted(name, &digest));
        gone.or_else(|| files.into_iter().find(|(name, path)| is_other(name, path)).map(|(name, _)| name))
    }

    /// A file with settings that counted when this process began, and was revoked since.
    fn revoked_settings(&self) -> Option<String> {
        let used = self.cache().used.clone();
        used.into_iter().find(|(name, digest)| !self.is_trusted(name, digest)).map(|(name, _)| name)
    }

    /// The files that commands of the settings name: no agent may write or read them.
    pub(crate) fn named_files(&self) -> impl Iterator<Item = PathBuf> {
        let is_named = |file: &Governed| file.bytes.is_none() && !file.beside;
        self.0.contents.files.iter().filter(move |(_, file)| is_named(file)).map(|(name, _)| self.0.folder.join(name))
    }

    /// What agents may not write because a server of any settings loads it.
    pub(crate) fn closed_for(&self, workspace: &Path, server: &Value, is_bound: bool) -> (Vec<&'static str>, Vec<PathBuf>) {
        let (names, environments) = loaded_code::packages(workspace, server);
        let closed = loaded_code::closed(workspace, Some(&*self.0.folder).filter(|_| is_bound), server);
        (names, environments.into_iter().chain(closed).collect())
    }

    /// What a trusted `polis.toml` forbade, while a changed one does not count.
    pub(crate) fn restrictions(&self) -> Value {
        let cache = self.cache();
        cache.folder.as_ref().map(|folder| folder.restrictions.clone()).unwrap_or_default()
    }

    /// Whether nothing is checked.
    pub(crate) fn trusts_everything(&self) -> bool {
        self.0.everything
    }

    /// The user's own configuration folder, if there is one.
    pub(crate) fn user(&self) -> Option<&Path> {
        self.0.user.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0.folder
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// What tells whether the user has trusted or revoked anything since.
    pub(crate) fn stamp(&self) -> Stamp {
        self.0.store.as_ref().and_then(TrustStore::stamp)
    }

    /// What is kept about this folder.
    pub(crate) fn record(&self) -> Option<FolderTrust> {
        self.cache().folder.clone()
    }

    /// Trusts what lay in the folder at the start: exactly what was shown.
    pub(crate) fn accept(&self) -> Result<(), CliError> {
        let (store, name) = self.store_key()?;
        let contents = &self.0.contents;
        let trusted = FolderTrust {
            files: contents.digests(),
            shown: items(contents),
            restrictions: restrictions(contents),
            declined: None,
            at: SystemClock.now().0 / 1_000,
        };
        self.0.data.accept(store)?;
        store.change(|all| all.folders.insert(name, trusted))?;
        self.reread()
    }

    /// Remembers that the user did not want this content.
    pub(crate) fn decline(&self) -> Result<(), CliError> {
        let ((store, name), all) = (self.store_key()?, self.whole_digest());
        store.change(|trusted| trusted.folders.entry(name).or_default().declined = Some(all))?;
        self.reread()
    }

    fn store_key(&self) -> Result<(&TrustStore, String), CliError> {
        let store = self.0.store.as_ref().ok_or_else(no_home)?;
        let name = self.0.folder.to_str().ok_or_else(|| {
            CliError::new("bad_folder", "the folder has a name that is not UTF-8; nothing can be remembered about it")
        })?;
        Ok((store, name.to_owned()))
    }

    /// What does not count, why, and what to type: one line.
    pub(crate) fn explanation(&self) -> String {
        let pending = self.pending();
        let names = pending.iter().take(6).map(|name| show::visible(name)).collect::<Vec<_>>().join(", ");
        let more = if pending.len() > 6 { format!(" and {} more", pending.len() - 6) } else { String::new() };
        let code = self.code();
        let why = if code == CHANGED { "changed since you trusted this folder" } else { "not trusted" };
        let how = match &self.0.store {
            Some(_) => "look at them and type polis trust",
            None => "HOME is not set, so that nothing can be remembered; --trust trusts them for one run",
        };
        format!("polis: going on without {names}{more}: {why}; {how} ({code})")
    }

    /// Why something does not count.
    pub(crate) fn code(&self) -> &'static str {
        let was = self.cache().folder.as_ref().is_some_and(|folder| !folder.files.is_empty());
        if was { CHANGED } else { UNTRUSTED }
    }

    /// Reads the store again if it has changed.
    fn reread(&self) -> Result<(), CliError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let stamp = store.stamp();
        if stamp == self.cache().stamp {
            return Ok(());
        }
        let name = self.0.folder.to_str().unwrap_or_default();
        let folder = store.read().map(|mut all| all.folders.remove(name));
        let mut cache = self.cache();
        cache.folder = folder.as_ref().ok().cloned().flatten();
        cache.stamp = stamp;
        folder.map(drop)
    }

    fn cache(&self) -> MutexGuard<'_, StoreCache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Trusts files that Polis has just written into a folder at the user's word.
pub(crate) fn trust_written(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), CliError> {
    let (Some(store), Ok(folder)) = (user_folder().map(TrustStore::new), folder.canonicalize()) else { return Ok(()) };
    let name = folder.display().to_string();
    let key_of = |path: &Path| key(path.canonicalize().ok()?.strip_prefix(&folder).ok()?);
    let written: Vec<(String, String)> =
        files.iter().filter_map(|(path, text)| Some((key_of(path)?, digest(text.as_bytes())))).collect();
    store.change(|all| all.folders.entry(name).or_default().files.extend(written))
}

/// Whether a file of the working directory may be changed without losing its trust: it is trusted as it is, or there is none yet.
pub(crate) fn is_trusted_text(path: &Path, text: Option<&str>) -> Result<bool, CliError> {
    let Some(text) = text else { return Ok(true) };
    let (Some(store), Ok(folder)) = (user_folder().map(TrustStore::new), Path::new(".").canonicalize()) else {
        return Ok(false);
    };
    let Some(name) = path.canonicalize().ok().and_then(|path| key(path.strip_prefix(&folder).ok()?)) else { return Ok(false) };
    let trusted = store.read()?;
    let known = trusted.folders.get(&folder.display().to_string()).and_then(|folder| folder.files.get(&name));
    Ok(known.is_some_and(|known| *known == digest(text.as_bytes())))
}

/// Where nothing can be remembered.
pub(crate) fn no_home() -> CliError {
    CliError::usage("no_home", "HOME is not set, so that nothing can be remembered; set it, or use --trust for one run")
}

/// What the settings forbid: rules that ask or deny, and budgets.
fn restrictions(contents: &Contents) -> Value {
    let all = contents.settings();
    // The folder's own file counts before the one in the data directory.
    let own = all.iter().find(|(name, _)| *name == crate::config::FILE);
    let Some((_, settings)) = own.or_else(|| all.iter().find(|(name, _)| name.ends_with(crate::config::FILE))) else {
        return Value::Null;
    };
    let holds_back = |rule: &&Value| rule["then"] != "allow";
    let rules: Vec<Value> = settings["policy"].as_array().into_iter().flatten().filter(holds_back).cloned().collect();
    match (&settings["budget"], rules.is_empty()) {
        (Value::Null, true) => Value::Null,
        (Value::Null, false) => serde_json::json!({ "policy": rules }),
        (budget, _) => serde_json::json!({ "policy": rules, "budget": budget }),
    }
}
