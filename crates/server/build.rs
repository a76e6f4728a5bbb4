//! Lists the built files of the page, so that the program holds them. It builds nothing itself: `web/dist` is committed.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", folder.display());
    if !folder.join("index.html").is_file() {
        println!(
            "cargo::error=web/dist/index.html is missing; it is part of the repository: run `npm ci && npm run build` in web/"
        );
        return;
    }
    let mut files = Vec::new();
    collect(&folder, &folder, &mut files);
    files.sort();
    let rows: String = files.iter().map(|(name, path)| format!("    ({name:?}, include_bytes!({path:?})),\n")).collect();
    let table = format!("&[\n{rows}]\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to write"));
    fs::write(out.join("page_files.rs"), table).expect("the folder that cargo gave can be written");
}

/// The files below a folder, each with its path from the first one.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if let (Ok(name), Ok(whole)) = (path.strip_prefix(root), path.canonicalize()) {
            files.push((name.to_string_lossy().replace('\\', "/"), whole.to_string_lossy().into_owned()));
        }
    }
}
