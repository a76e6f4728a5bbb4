//! A replicated PostgreSQL that fails over by itself: three servers under Patroni, with synchronous replication, and one etcd.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polis_testkit::postgres::{as_user, free_port, give, programs, skip};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

const SERVERS: usize = 3;

/// The cluster. Everything of it is killed when it is dropped.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    etcd: Child,
    nodes: Vec<Node>,
}

/// A server and the Patroni that runs it.
struct Node {
    name: String,
    port: u16,
    /// Where Patroni answers.
    rest: u16,
    settings: PathBuf,
    data: PathBuf,
    patroni: Mutex<Option<Child>>,
}

impl Cluster {
    /// Starts a cluster and waits until every standby has followed; none, and a line that says why, where that cannot be.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let (etcd, patroni) = (on_path("etcd"), on_path("patroni"));
        let (Some(bin), Some(etcd), Some(_)) = (programs(), etcd, patroni) else {
            skip(test, "postgresql, patroni and etcd are needed (Debian's packages `postgresql`, `patroni`, `etcd-server`)");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        give(dir.path());
        let (client, peer) = (free_port(), free_port());
        let mut command = as_user(&etcd);
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        for (option, value) in [
            ("listen-client-urls", at(client)),
            ("advertise-client-urls", at(client)),
            ("listen-peer-urls", at(peer)),
            ("initial-advertise-peer-urls", at(peer)),
            ("initial-cluster", format!("default={}", at(peer))),
            ("data-dir", dir.path().join("etcd").display().to_string()),
        ] {
            command.arg(format!("--{option}")).arg(value);
        }
        let etcd = quiet(&mut command, &dir.path().join("etcd.log"));
        let nodes = (0..SERVERS).map(|n| Node::new(n, dir.path(), &bin, client)).collect();
        let cluster = Self { dir, etcd, nodes };
        cluster.nodes.iter().for_each(Node::start);
        cluster.wait_until_whole();
        Some(cluster)
    }

    /// The address of a schema, with all servers.
    pub(crate) fn url(&self, schema: &str) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("postgres://polis@{}/postgres?schema={schema}&connect_timeout=2", hosts.join(","))
    }

    /// Kills the primary, alone or with its Patroni as when a machine is lost; waits until another server is the primary and the killed
    /// one follows it.
    pub(crate) fn kill_primary(&self, with_patroni: bool) {
        let before = self.primary().expect("a cluster that is whole has a primary");
        if with_patroni {
            before.kill_patroni();
        }
        before.kill_server();
        if with_patroni {
            self.wait(|| self.primary().is_some_and(|node| node.name != before.name), "no other server becomes the primary");
            before.start();
        }
        self.wait_until_whole();
    }

    /// The server that says that it is the primary.
    pub(crate) fn primary_name(&self) -> Option<&str> {
        self.primary().map(|node| &*node.name)
    }

    fn primary(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.ask("SELECT pg_is_in_recovery()").as_deref() == Some("f"))
    }

    /// Waits until there is a primary, and all other servers follow it. One of them does so synchronously and is known to Patroni as the
    /// one that may take its place: if the primary is lost before that, nobody may.
    fn wait_until_whole(&self) {
        let followers = "SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication \
                         WHERE state = 'streaming'";
        let is_whole = || {
            let follow = self.primary().and_then(|node| node.ask(followers));
            follow.as_deref() == Some("2|1") && self.nodes.iter().any(Node::may_be_primary)
        };
        self.wait(is_whole, "the cluster does not become whole");
    }

    fn wait(&self, is_done: impl Fn() -> bool, otherwise: &str) {
        for _ in 0..1_200 {
            if is_done() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let logs = self.nodes.iter().map(|node| (format!("{}.log", node.name), node));
        for (log, node) in logs {
            let text = fs::read_to_string(self.dir.path().join(&log)).unwrap_or_default();
            let last: Vec<_> = text.lines().rev().take(30).collect();
            println!("{log} (port {}):\n{}", node.port, last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        panic!("{otherwise}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter().for_each(Node::kill_patroni);
        self.nodes.iter().for_each(Node::kill_server);
        self.etcd.kill().unwrap();
        self.etcd.wait().unwrap();
    }
}

impl Node {
    fn new(n: usize, dir: &Path, bin: &Path, etcd: u16) -> Self {
        let name = format!("node{n}");
        let (port, rest, data) = (free_port(), free_port(), dir.join(&name));
        let at = |port: u16| format!("127.0.0.1:{port}");
        let who = |name: &str| json!({ "username": name, "password": "polis" });
        let settings = json!({
            "scope": "polis",
            "name": name,
            "restapi": { "listen": at(rest), "connect_address": at(rest) },
            "etcd3": { "hosts": at(etcd) },
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    // A server that has crashed is not waited for.
                    "primary_start_timeout": 0,
                    "synchronous_mode": true,
                    "synchronous_mode_strict": true,
                    "postgresql": {
                        "use_pg_rewind": true,
                        "parameters": {
                            "wal_log_hints": "on",
                            "max_connections": 100,
                            "shared_buffers": "16MB",
                            "unix_socket_directories": "",
                        },
                    },
                },
                "initdb": [{ "encoding": "UTF8" }, { "locale": "C" }, { "auth": "trust" }, { "username": "polis" }],
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
            "postgresql": {
                "listen": at(port),
                "connect_address": at(port),
                "data_dir": data,
                "bin_dir": bin,
                "pgpass": dir.join(format!("{name}.pgpass")),
                "authentication": { "superuser": who("polis"), "replication": who("polis"), "rewind": who("polis") },
                "remove_data_directory_on_rewind_failure": true,
                "remove_data_directory_on_diverged_timelines": true,
            },
        });
        let file = dir.join(format!("{name}.yml"));
        fs::write(&file, settings.to_string()).unwrap();
        give(&file);
        Self { name, port, rest, settings: file, data, patroni: Mutex::default() }
    }

    fn start(&self) {
        let patroni = on_path("patroni").expect("it was there");
        let log = self.settings.with_extension("log");
        *self.lock() = Some(quiet(as_user(&patroni).arg(&self.settings), &log));
    }

    fn kill_patroni(&self) {
        if let Some(mut patroni) = self.lock().take() {
            patroni.kill().unwrap();
            patroni.wait().unwrap();
        }
    }

    /// Kills every process of the server, and waits until none is left.
    fn kill_server(&self) {
        let Ok(pids) = fs::read_to_string(self.data.join("postmaster.pid")) else { return };
        let Some(main) = pids.lines().next().and_then(|pid| pid.parse::<u32>().ok()) else { return };
        // A file that an earlier server has left may name a process that is not ours.
        let command = fs::read(format!("/proc/{main}/cmdline")).unwrap_or_default();
        if !String::from_utf8_lossy(&command).contains(&*self.data.to_string_lossy()) {
            return;
        }
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap_or_default();
        let all: BTreeSet<u32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).chain([main]).collect();
        let pid = |pid: u32| Pid::from_raw(pid as i32).unwrap();
        let _ = kill_process(pid(main), Signal::KILL);
        // One that has ended meanwhile needs nothing.
        for one in &all {
            let _ = kill_process(pid(*one), Signal::KILL);
        }
        let is_there = |one: &u32| {
            let state = fs::read_to_string(format!("/proc/{one}/stat")).unwrap_or_default();
            test_kill_process(pid(*one)).is_ok() && !state.contains(") Z ")
        };
        while all.iter().any(is_there) {
            std::thread::yield_now();
        }
    }

    /// Whether Patroni says that this is the synchronous standby.
    fn may_be_primary(&self) -> bool {
        let answer = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.rest))?;
            stream.write_all(b"GET /synchronous HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        answer().is_ok_and(|answer| answer.lines().next().is_some_and(|line| line.contains(" 200 ")))
    }

    fn ask(&self, sql: &str) -> Option<String> {
        let output = Command::new(programs()?.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql])
            .arg(format!("postgres://polis@127.0.0.1:{}/postgres?connect_timeout=1", self.port))
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.patroni.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a process that writes what it says into a file.
fn quiet(command: &mut Command, log: &Path) -> Child {
    let file = || fs::File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stdout(file()).stderr(file()).spawn().unwrap()
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|file| file.is_file())
}
