//! Three nodes and a database, with a link before everything that they connect to.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polis_testkit::history::Write;
use polis_testkit::link::{Link, Passage};
use polis_testkit::postgres::{Server, free_port, give};
use rustix::process::Signal;

use super::faults::{Fault, Step, Victim};
use crate::cli::clock::fake_clock;
use crate::cli::disk_full::SmallDisk;
use crate::cli::support::{Home, Served};

pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// How long anything may take on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(150);

const NODES: usize = 3;

/// Answers `add` with `added ID`, after it has added the id to a file.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\)[,}].*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"ledger","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"add","description":"Adds an id.","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      what=$(printf '%s' "$line" | sed -n 's/.*"arguments":{"id":"\([^"]*\)"}.*/\1/p')
      printf '%s\n' "$what" >> "$LEDGER"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"added %s"}]}}\n' "$id" "$what" ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;

/// Writes down each change of a society's row, with the node that made it. Rows are in the order of commits, because the row is locked.
const AUDIT: &str = "
    CREATE TABLE SCHEMA.audit (
        n bigserial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp(), writer text, name text,
        owner_before text, owner_after text, leased_before boolean, leased_after boolean,
        epoch_before bigint, epoch_after bigint, head_before bigint, head_after bigint
    );
    CREATE FUNCTION SCHEMA.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO SCHEMA.audit (writer, name, owner_before, owner_after, leased_before, leased_after, epoch_before, epoch_after,
            head_before, head_after)
        VALUES (current_setting('application_name'), convert_from(NEW.name, 'UTF8'), OLD.owner, NEW.owner,
            coalesce(OLD.lease_until > now(), false), coalesce(NEW.lease_until > now(), false), OLD.epoch, NEW.epoch,
            OLD.head, NEW.head);
        RETURN NULL;
    END $$;
    CREATE TRIGGER audit AFTER UPDATE ON SCHEMA.societies FOR EACH ROW
        WHEN (OLD.head <> NEW.head OR OLD.epoch <> NEW.epoch OR OLD.owner IS DISTINCT FROM NEW.owner)
        EXECUTE FUNCTION SCHEMA.audit();";

pub(super) struct Rig {
    server: Server,
    /// Where the files of the server are; it goes after the server.
    disk: Option<SmallDisk>,
    _mount: tempfile::TempDir,
    schema: String,
    /// What the nodes share: the ledger of effects, and what they say.
    pub(super) shared: tempfile::TempDir,
    nodes: Vec<Mutex<Node>>,
    pub(super) begun: Instant,
    /// The time of the database when it began, in milliseconds.
    begun_ms: f64,
    settings: Settings,
    /// Faults that were asked for and are not possible here, and why.
    pub(super) impossible: Vec<(&'static str, String)>,
}

/// How the nodes are set up.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) lease: Duration,
    /// Where the model is.
    pub(super) model: String,
}

/// One of the three, which is a new process after each kill.
struct Node {
    letter: char,
    home: Home,
    /// How many processes it was.
    starts: usize,
    database: Link,
    peers: Link,
    listen: u16,
    served: Option<Served>,
    /// Set while the process takes requests.
    address: Option<String>,
}

/// A fault that goes on.
pub(super) struct Ongoing {
    step: Step,
    pub(super) node: usize,
    ballast: Option<PathBuf>,
}

impl Rig {
    /// Starts the nodes; none, and a line that says why, where there is no PostgreSQL.
    pub(super) fn start(test: &str, settings: Settings) -> Option<Self> {
        let mut impossible = Vec::new();
        let mount = tempfile::tempdir().unwrap();
        give(mount.path());
        let (server, disk) = match SmallDisk::mount(mount.path(), "300m") {
            Ok(disk) => (Server::own_in(test, &disk.0)?, Some(disk)),
            Err(why) => {
                impossible.push(("disk", format!("no small disk can be mounted: {why}")));
                (Server::own(test)?, None)
            }
        };
        if fake_clock().is_none() {
            impossible.push(("clock", "libfaketime is not there (Debian's package `faketime`)".to_owned()));
        }
        let shared = tempfile::tempdir().unwrap();
        fs::write(shared.path().join("ledger"), "").unwrap();
        fs::write(shared.path().join("server.sh"), SERVER).unwrap();
        let schema = server.fresh_schema();
        let nodes: Vec<_> = ['a', 'b', 'c'].map(|letter| Mutex::new(Node::new(letter, &server))).into();
        let mut rig = Self {
            server,
            disk,
            _mount: mount,
            schema,
            shared,
            nodes,
            begun: Instant::now(),
            begun_ms: 0.0,
            settings,
            impossible,
        };
        rig.start_node(0);
        rig.server.psql(&AUDIT.replace("SCHEMA", &rig.schema));
        (1..NODES).for_each(|n| rig.start_node(n));
        let now = rig.server.psql("SELECT extract(epoch FROM clock_timestamp()) * 1000");
        (rig.begun, rig.begun_ms) = (Instant::now(), now.parse().unwrap());
        Some(rig)
    }

    fn node(&self, n: usize) -> MutexGuard<'_, Node> {
        self.nodes[n].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_node(&self, n: usize) {
        let mut node = self.node(n);
        node.starts += 1;
        let said = self.shared.path().join(format!("{}{}", node.letter, node.starts));
        let name = format!("{}{}", node.letter, node.starts);
        let ledger = self.shared.path().join("ledger");
        let server = self.shared.path().join("server.sh");
        let config = format!(
            "[store]\nlease = \"{}s\"\n[mcp.ledger]\ncommand = \"sh\"\nargs = [\"{}\"]\nenv = {{ LEDGER = \"{}\" }}\noutside = false\n\
             [[policy]]\nserver = \"ledger\"\nthen = \"allow\"\n",
            self.settings.lease.as_secs(),
            server.display(),
            ledger.display()
        );
        node.home.write("polis.toml", &config);
        let clock = node.home.path().join("clock");
        fs::write(&clock, "+0\n").unwrap();
        let url = self.server.url(&self.schema);
        let url = url.replace(&format!(":{}/", self.server.port()), &format!(":{}/", node.database.port()));
        let (listen, address) = (format!("127.0.0.1:{}", node.listen), format!("127.0.0.1:{}", node.peers.port()));
        let args = ["--node-listen", &listen, "--node-address", &address, "--node-name", &name, "--model", "openai/test"];
        let served = node.home.serve_with(&args, |command| {
            command.env("POLIS_STORE", format!("{url}&application_name={name}"));
            command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", &self.settings.model);
            // A pipe that nobody reads would fill up.
            command.stderr(fs::File::create(&said).unwrap());
            if let Some(library) = fake_clock() {
                command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &clock).env("FAKETIME_NO_CACHE", "1");
                command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            }
            for name in ["POLIS_PLANT", "POLIS_LOG"] {
                if let Ok(value) = std::env::var(name) {
                    command.env(name, value);
                }
            }
        });
        node.address = Some(served.address.clone());
        node.served = Some(served);
    }

    /// The address of one of the nodes that run.
    pub(super) fn address(&self, which: usize) -> Option<String> {
        self.node(which % NODES).address.clone()
    }

    /// The node that owns a society, by its number.
    pub(super) fn owner(&self, society: &str) -> Option<usize> {
        let sql = "SELECT owner FROM SCHEMA.societies WHERE name = 'NAME' AND lease_until > now()";
        let owner = self.server.try_psql(&sql.replace("SCHEMA", &self.schema).replace("NAME", society)).ok()?;
        (0..NODES).find(|n| owner.starts_with(self.node(*n).letter))
    }

    /// What the node and the database hear of each other.
    pub(super) fn set_database(&self, node: usize, passage: Passage) {
        self.node(node).database.set(passage);
    }

    /// Begins a fault.
    pub(super) fn begin(&self, step: Step, societies: &[&str]) -> Ongoing {
        let node = match step.victim {
            Victim::Node(n) => n,
            Victim::Owner(n) => self.owner(societies[n % societies.len()]).unwrap_or(n % NODES),
        };
        let mut ongoing = Ongoing { step, node, ballast: None };
        match step.fault {
            Fault::Kill => {
                let mut node = self.node(node);
                node.address = None;
                node.served.take().unwrap().kill();
            }
            Fault::Pause => self.node(node).served.as_ref().unwrap().signal(Signal::STOP),
            Fault::Database(passage) => self.node(node).database.set(passage),
            Fault::Peers(passage) => self.node(node).peers.set(passage),
            Fault::AllPeers(passage) => (0..NODES).for_each(|n| self.node(n).peers.set(passage)),
            Fault::Clock(seconds) => {
                fs::write(self.node(node).home.path().join("clock"), format!("{seconds:+}\n")).unwrap();
            }
            Fault::FullDisk => ongoing.ballast = self.disk.as_ref().map(|disk| fill(&disk.0)),
        }
        ongoing
    }

    /// Ends a fault.
    pub(super) fn end(&self, ongoing: Ongoing) {
        let node = ongoing.node;
        match ongoing.step.fault {
            Fault::Kill => self.start_node(node),
            Fault::Pause => self.node(node).served.as_ref().unwrap().signal(Signal::CONT),
            Fault::Database(_) => self.node(node).database.set(Passage::Open),
            Fault::Peers(_) => self.node(node).peers.set(Passage::Open),
            Fault::AllPeers(_) => (0..NODES).for_each(|n| self.node(n).peers.set(Passage::Open)),
            Fault::Clock(_) => {}
            Fault::FullDisk => {
                ongoing.ballast.into_iter().for_each(|ballast| fs::remove_file(ballast).unwrap());
                // One that could not write its own log has ended.
                if self.server.try_psql("SELECT 1").is_err() {
                    self.server.kill();
                    self.server.start();
                }
            }
        }
    }

    /// Starts again whatever has ended by itself. Gives which nodes that were.
    pub(super) fn revive(&self) -> Vec<String> {
        let has_ended = |n: &usize| self.node(*n).served.as_mut().is_some_and(|served| !served.is_running());
        let ended: Vec<usize> = (0..NODES).filter(has_ended).collect();
        let name = |n: &usize| format!("{}{}", self.node(*n).letter, self.node(*n).starts);
        let names = ended.iter().map(name).collect();
        ended.into_iter().for_each(|n| {
            self.node(n).served = None;
            self.start_node(n);
        });
        names
    }

    /// What nodes did to the row of a society.
    pub(super) fn writes(&self, society: &str) -> Vec<(Duration, Write)> {
        let sql = "SELECT extract(epoch FROM at) * 1000, writer, coalesce(nullif(owner_before, ''), '-'),
            coalesce(nullif(owner_after, ''), '-'), leased_before, leased_after, epoch_before, epoch_after, head_before, head_after
            FROM SCHEMA.audit WHERE name = 'NAME' ORDER BY n";
        let rows = self.server.psql(&sql.replace("SCHEMA", &self.schema).replace("NAME", society));
        let read = |row: &str| {
            let columns: Vec<&str> = row.split('|').collect();
            let number = |n: usize| columns[n].parse::<i64>().unwrap();
            // What is behind the name of a node differs at each start; the name itself does here.
            let owner = |n: usize| (columns[n] != "-").then(|| columns[n].split('-').next().unwrap().to_owned());
            let at = Duration::from_secs_f64((columns[0].parse::<f64>().unwrap() - self.begun_ms).max(0.0) / 1000.0);
            let write = Write {
                writer: columns[1].to_owned(),
                owner: [owner(2), owner(3)],
                is_leased: [columns[4] == "t", columns[5] == "t"],
                epoch: [number(6), number(7)],
                head: [number(8) as u64, number(9) as u64],
            };
            (at, write)
        };
        rows.lines().map(read).collect()
    }

    /// What the tool that writes has done.
    pub(super) fn effects(&self) -> Vec<String> {
        let ledger = fs::read_to_string(self.shared.path().join("ledger")).unwrap();
        ledger.lines().map(str::to_owned).collect()
    }

    /// The last lines that each process said.
    fn said(&self) -> String {
        let mut said = String::new();
        for n in 0..NODES {
            let node = self.node(n);
            for start in 1..=node.starts {
                let name = format!("{}{start}", node.letter);
                let text = fs::read_to_string(self.shared.path().join(&name)).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                said.push_str(&format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(15)..].join("\n")));
            }
        }
        said
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            super::say(&self.said());
        }
    }
}

impl Node {
    fn new(letter: char, server: &Server) -> Self {
        let home = Home::new();
        fs::DirBuilder::new().mode(0o700).create(home.data()).unwrap();
        let token = home.data().join("token");
        let mut token = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(token).unwrap();
        token.write_all(TOKEN.as_bytes()).unwrap();
        fs::create_dir(home.path().join("roles")).unwrap();
        home.write("roles/root.md", "---\nname: Root\ntools: [ledger__add]\n---\nAdd what you are asked to add.\n");
        let listen = free_port();
        let (database, peers) = (Link::start(server.port()), Link::start(listen));
        Self { letter, home, starts: 0, database, peers, listen, served: None, address: None }
    }
}

/// Fills a disk up. Gives the file that does.
fn fill(disk: &Path) -> PathBuf {
    let ballast = disk.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 64 << 10]).is_ok() {}
    ballast
}

/// Looks again and again until it is so.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ends the threads of a run also when it fails.
pub(super) struct Over<'flag>(pub(super) &'flag AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
