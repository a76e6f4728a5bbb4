//! `polis docs`: the documents of this version, served on this machine, written into a folder, listed, or printed; and
//! the section about an error code.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use polis_docs::{ErrorCode, Language, Page, contents, site};
use polis_server::serve_files;

use crate::cli::{Docs, DocsLanguage};
use crate::error::{CliError, Exit};
use crate::{out, signals, terminal_language};

pub(crate) async fn docs(args: &Docs) -> Result<Exit, CliError> {
    let language = match args.language {
        Some(DocsLanguage::Zh) => Language::Chinese,
        None if terminal_language::asks_for_chinese() => Language::Chinese,
        _ => Language::English,
    };
    match args {
        Docs { page: Some(name), .. } => print(name, language),
        Docs { list: true, .. } => list(language),
        Docs { out: Some(folder), .. } => write(folder),
        Docs { listen, .. } => serve(*listen, language).await,
    }
}

fn print(name: &str, language: Language) -> Result<Exit, CliError> {
    // The paths by which documents name each other are understood as well.
    let plain = name.trim_start_matches("docs/").trim_end_matches(".md").trim_end_matches(".zh");
    if let Some(page) = Page::find(plain, language) {
        return out::text(&page.plain()).map(|()| Exit::Done);
    }
    // As they stand at the end of a message, too.
    if let Some(code) = ErrorCode::find(name.trim_matches(['(', ')', '`'])) {
        out::text(&code.explanation())?;
        out::note(&format!("polis: polis docs {} has the whole page", code.page.name()));
        return Ok(Exit::Done);
    }
    let pages: Vec<String> = Page::all().map(|page| page.name()).collect();
    let names: Vec<&str> = pages.iter().map(String::as_str).chain(ErrorCode::all().map(|code| code.code)).collect();
    let message = format!(
        "there is no page and no error code `{name}`; polis docs --list lists the pages, polis docs errors/index the codes"
    );
    Err(CliError::usage("unknown_page", message).meant(plain, names))
}

fn list(language: Language) -> Result<Exit, CliError> {
    for section in contents() {
        out::line(section.title(language))?;
        for name in section.pages {
            let title = Page::find(name, language).map_or("", |page| page.title());
            out::line(&format!("  {name:<26}{title}"))?;
        }
    }
    Ok(Exit::Done)
}

fn write(folder: &Path) -> Result<Exit, CliError> {
    let failed = |error: std::io::Error| {
        CliError::new("not_written", format!("{}: {error}; name a folder that can be written", folder.display()))
    };
    for file in site() {
        let path = folder.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, &file.bytes)).map_err(failed)?;
    }
    out::line(&folder.join("index.html").display().to_string())?;
    Ok(Exit::Done)
}

async fn serve(listen: Option<SocketAddr>, language: Language) -> Result<Exit, CliError> {
    let wanted = listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let failed = |error: std::io::Error| CliError::new("cannot_listen", format!("{wanted}: {error}; choose another --listen"));
    let listener = tokio::net::TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let home = Page::find("index", language).map(|page| page.address()).unwrap_or_default();
    let stop = signals::watch();
    out::line(&format!("http://{address}/{home}"))?;
    let files: BTreeMap<_, _> = site().into_iter().map(|file| (file.path, (file.content_type, file.bytes))).collect();
    serve_files(listener, files, stop).await.map_err(failed)?;
    Ok(Exit::Done)
}
