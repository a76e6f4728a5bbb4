//! Lists the documents and their pictures, so that the program holds them. `pages` has links to where they are in the repository.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("pages");
    let mut files = Vec::new();
    collect(&folder, &folder, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for (name, path) in files {
        table += &format!("    ({name:?}, include_bytes!({path:?})),\n");
    }
    table += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to write"));
    fs::write(out.join("files.rs"), table).expect("the folder that cargo gave can be written");
}

/// The pages and pictures below a folder, each with its path from the first one.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_shown = ["md", "png", "svg"].iter().any(|end| path.extension().is_some_and(|it| it == *end));
        if path.is_dir() {
            collect(root, &path, files);
        } else if let (true, Ok(name)) = (is_shown, path.strip_prefix(root)) {
            files.push((name.to_string_lossy().replace('\\', "/"), path));
        }
    }
}
