//! The contract that every log keeps: directly, behind a pooler in transaction mode, and encrypted.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use polis_ports::Log;
use polis_store_postgres::{Options, PostgresLog};
use polis_testkit::conformance;
use polis_testkit::postgres::{Server, as_user, free_port, give, skip};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// The conformance suite, each case in a schema of its own behind an address.
async fn check(server: &Server, url: impl Fn(&str) -> String) {
    let fresh = || -> Arc<dyn Log> {
        let options = Options::parse(&url(&server.fresh_schema())).unwrap();
        Arc::new(block_in_place(|| Handle::current().block_on(PostgresLog::open(options))).unwrap())
    };
    conformance::check(fresh).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_in_postgresql_keeps_the_contract_of_the_log() {
    let test = "contract::the_log_in_postgresql_keeps_the_contract_of_the_log";
    let Some(server) = Server::shared(test) else { return };
    check(&server, |schema| server.url(schema)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_in_transaction_mode_the_contract_holds() {
    let test = "contract::behind_a_pooler_in_transaction_mode_the_contract_holds";
    let Some(server) = Server::shared(test) else { return };
    let Some(pooler) = Pooler::start(test, &server) else { return };
    check(&server, |schema| format!("postgres://polis@127.0.0.1:{}/postgres?schema={schema}", pooler.port)).await;
}

/// The server's certificate is for `localhost`, and only its authority makes it trusted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_connection_checks_the_certificate_of_the_server() {
    let Some(server) = Server::own("contract::an_encrypted_connection_checks_the_certificate_of_the_server") else { return };
    let tls = format!("{}/../server/tests/tls", env!("CARGO_MANIFEST_DIR"));
    for (file, mode) in [("certificate.pem", 0o644), ("key.pem", 0o600)] {
        let copy = server.dir().join("data").join(file);
        fs::copy(Path::new(&tls).join(file), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        give(&copy);
    }
    server.psql("ALTER SYSTEM SET ssl_cert_file = 'certificate.pem'");
    server.psql("ALTER SYSTEM SET ssl_key_file = 'key.pem'");
    server.psql("ALTER SYSTEM SET ssl = on");
    server.psql("SELECT pg_reload_conf()");
    // What a session sees of the files is loaded by the main process, which does it in its own time; a restart waits for it.
    server.kill();
    server.start();
    let open = async |host: &str, root: &str| {
        let url = format!("postgres://polis@{host}:{}/postgres?sslmode=require{root}", server.port());
        PostgresLog::open(Options::parse(&url).unwrap()).await.map(drop).map_err(|error| error.to_string())
    };
    let trusted = format!("&sslrootcert={tls}/authority.pem");
    open("localhost", &trusted).await.unwrap();
    assert_eq!(server.psql("SELECT count(*) FROM polis.societies"), "0");
    let unknown = open("localhost", "").await.unwrap_err();
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    let url = format!("postgres://polis@127.0.0.1:{}/postgres?sslmode=require", server.port());
    assert!(PostgresLog::open(Options::parse(&url).unwrap()).await.is_err());
    server.psql("ALTER SYSTEM SET ssl = off");
    server.kill();
    server.start();
    let plain = open("localhost", &trusted).await.unwrap_err();
    assert!(plain.contains("does not support TLS"), "{plain}");
}

/// A pgbouncer before a server.
struct Pooler {
    process: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Pooler {
    fn start(test: &str, server: &Server) -> Option<Self> {
        let program =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().map(Path::new).find(|program| program.is_file());
        let Some(program) = program else {
            skip(test, "pgbouncer is missing");
            return None;
        };
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        give(dir.path());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=polis\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\n",
            server.port()
        );
        let file = dir.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        give(&file);
        let mut process =
            as_user(program).arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("process up") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "pgbouncer does not start: {said}");
        }
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Some(Self { process, port, _dir: dir })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
