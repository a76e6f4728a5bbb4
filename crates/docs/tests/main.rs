//! The whole site: every page is in the table of contents, every link leads somewhere, nothing is loaded from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polis_docs::{Language, Link, Page, Rendered, contents, render, site};

/// The pages that are generated from the code and have no Chinese text, and the error codes.
fn is_reference(page: &Page) -> bool {
    let name = page.name();
    name.starts_with("reference/") || name.starts_with("errors/") || name == "changelog"
}

#[test]
fn every_page_is_in_the_contents_once_and_has_a_title() {
    let mut listed: Vec<String> = contents().iter().flat_map(|section| section.pages).map(|name| (*name).to_owned()).collect();
    listed.sort();
    let there: Vec<String> = Page::all().filter(|page| page.language() == Language::English).map(|page| page.name()).collect();
    let there: BTreeSet<String> = there.into_iter().collect();
    assert_eq!(listed, there.into_iter().collect::<Vec<_>>());
    for page in Page::all() {
        assert!(page.title() != page.source, "{} has no title", page.source);
    }
}

#[test]
fn every_page_but_the_reference_has_a_chinese_text() {
    let lacking: Vec<_> = Page::all()
        // Some pages have their Chinese half below the English one.
        .filter(|page| !is_reference(page) && !page.text.contains("[中文](#") && page.translated(Language::Chinese).is_none())
        .map(|page| page.source)
        .collect();
    assert_eq!(lacking, [""; 0], "these have no Chinese page");
}

#[test]
fn every_link_leads_to_a_page_a_heading_or_a_file_of_the_repository() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut wrong, mut links) = (Vec::new(), 0);
    let rendered: BTreeMap<Page, Rendered> = Page::all().map(|page| (page, render(&page))).collect();
    for (page, shown) in &rendered {
        for link in &shown.links {
            links += 1;
            let is_right = match link {
                Link::Elsewhere(address) => address.starts_with("https://"),
                Link::Page { page, anchor: Some(anchor) } => {
                    rendered[page].headings.iter().any(|heading| heading.anchor == *anchor)
                }
                Link::Page { anchor: None, .. } | Link::Picture(_) => true,
                Link::Source(path) => repository.join(path).exists(),
            };
            if !is_right {
                wrong.push(format!("{}: {link:?}", page.source));
            }
        }
    }
    assert!(wrong.is_empty(), "links to nowhere:\n{}", wrong.join("\n"));
    assert!(links > 500, "only {links} links were seen");
}

#[test]
fn the_site_is_complete_and_loads_nothing_from_elsewhere() {
    let files = site();
    let paths: BTreeSet<&str> = files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths.len(), files.len(), "two files have one path");
    for page in ["index.html", "zh/index.html", "tutorial.html", "zh/tutorial.html", "errors/access.html", "search-zh.js"] {
        assert!(paths.contains(page), "{page} is missing");
    }
    for file in files.iter().filter(|file| file.path.ends_with(".html")) {
        let text = std::str::from_utf8(&file.bytes).unwrap();
        let folder = Path::new(&file.path).parent().unwrap();
        for attribute in ["src=\"", "href=\""] {
            for target in text.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap()) {
                if attribute == "href=\"" && (target.starts_with("https://") || target.starts_with('#')) {
                    continue;
                }
                let path = folder.join(target.split('#').next().unwrap());
                let mut whole: Vec<&str> = Vec::new();
                for part in path.iter().map(|part| part.to_str().unwrap()) {
                    if part == ".." { assert!(whole.pop().is_some(), "{}: {target}", file.path) } else { whole.push(part) }
                }
                assert!(paths.contains(&*whole.join("/")), "{}: {target} is not on the site", file.path);
            }
        }
    }
}
