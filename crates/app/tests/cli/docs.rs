//! `polis docs`: the pages are listed, printed, written as a site, and served on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use super::support::{Home, signal};
use super::terminal::Terminal;

#[test]
fn pages_are_listed_and_printed_in_the_language_that_is_asked_for() {
    let home = Home::new();
    let listed = home.polis(&["docs", "--list"]).ok();
    for line in ["Start", "  tutorial ", "  errors/access ", "  reference/command-line "] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    assert!(home.polis(&["docs", "--list", "--language", "zh"]).ok().contains("入门"));
    assert_eq!(home.polis(&["docs", "tutorial"]).ok(), include_str!("../../../../docs/tutorial.md"));
    // The paths by which pages name each other are understood.
    let chinese = home.polis(&["docs", "docs/tutorial.md", "--language", "zh"]).ok();
    assert_eq!(chinese, include_str!("../../../../docs/tutorial.zh.md"));
    // Comments are for tests, and a terminal shows no pictures.
    let page = home.polis(&["docs", "page"]).ok();
    assert!(page.contains("\nA conversation on a phone\n") && !page.contains("!["), "{page}");
    let societies = home.polis(&["docs", "societies"]).ok();
    let source = include_str!("../../../../docs/societies.md");
    assert!(source.contains("<!--") && !societies.contains("<!--"), "{societies}");
    // What has no Chinese page is printed in English.
    assert!(home.polis(&["docs", "errors/access", "--language", "zh"]).ok().starts_with("# Access"));
    let done = home.polis(&["docs", "tutoral"]);
    assert!(done.stderr.contains("did you mean `tutorial`?"), "{}", done.stderr);
    done.fails(2, "unknown_page");
    assert!(!home.data().exists(), "documents need no data directory");
}

#[test]
fn an_error_code_is_explained_by_its_section_and_one_like_it_is_suggested() {
    let home = Home::new();
    let explained = home.polis(&["docs", "unknown_agent"]);
    assert!(explained.stderr.contains("polis docs errors/names has the whole page"), "{}", explained.stderr);
    let explained = explained.ok();
    assert!(
        explained.starts_with("## unknown_agent\n\n**Means** ") && !explained.contains("## conversation_started"),
        "{explained}"
    );
    // As it stands at the end of a message; several codes may share a section.
    let shared = home.polis(&["docs", "(ambiguous_conversation)"]).ok();
    assert!(shared.starts_with("## unknown_conversation, ambiguous_conversation, no_conversation\n"), "{shared}");
    let misspelt = home.polis(&["docs", "unknwon_agent"]);
    assert!(misspelt.stderr.contains("did you mean `unknown_agent`?"), "{}", misspelt.stderr);
    misspelt.fails(2, "unknown_page");
    // A person at a terminal is told of it, a program gets the line of the error alone.
    let mut terminal = Terminal::start(home.command(&["docs", "unknwon_agent"]));
    terminal.until("(unknown_page)");
    terminal.until("polis: polis docs unknown_page explains it");
    assert_eq!(terminal.ends(), Some(2));
}

#[test]
fn the_site_is_written_into_a_folder_and_served_without_a_token() {
    let home = Home::new();
    let written = home.polis(&["docs", "--out", "site"]).ok();
    assert_eq!(written, "site/index.html\n");
    let tutorial = std::fs::read(home.path().join("site/zh/tutorial.html")).unwrap();
    let index = std::fs::read_to_string(home.path().join("site/index.html")).unwrap();
    assert!(index.contains("<title>Polis</title>"), "{}", &index[..400]);
    home.write("file", "");
    home.polis(&["docs", "--out", "file"]).fails(1, "not_written");

    let mut server = home.command(&["docs"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let address = first.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/index.html")).unwrap().to_owned();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        reply
    };
    assert!(get("/zh/tutorial.html").ends_with(&tutorial));
    let home_page = String::from_utf8(get("/")).unwrap();
    assert!(home_page.starts_with("HTTP/1.1 200") && home_page.contains("default-src 'self'"), "{home_page}");
    assert!(get("/../Cargo.toml").starts_with(b"HTTP/1.1 404"));
    signal(&server, Signal::INT);
    assert!(server.wait().unwrap().success());
}
