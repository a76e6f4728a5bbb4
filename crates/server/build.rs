//! Packs the built files of the page with gzip and lists them, so that the program holds them. It builds nothing itself: `web/dist` is committed, and `dist` is a
//! link to it, so that a published crate has them too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("dist");
    println!("cargo::rerun-if-changed={}", folder.display());
    if !folder.join("index.html").is_file() {
        println!(
            "cargo::error=web/dist/index.html is missing; it is part of the repository: run `npm ci && npm run build` in web/"
        );
        return;
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says where to write"));
    let mut files = Vec::new();
    collect(&folder, &folder, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for (n, (name, path)) in files.iter().enumerate() {
        // A copy stays as it is while we are compiled, also if the page is built anew meanwhile.
        let packed = out.join(format!("page-{n}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(path).expect("a file of web/dist can be read")).expect("memory can be written to");
        fs::write(&packed, encoder.finish().expect("memory can be written to"))
            .expect("the folder that cargo gave can be written");
        table += &format!("    ({name:?}, include_bytes!({packed:?})),\n");
    }
    table += "]\n";
    fs::write(out.join("page_files.rs"), table).expect("the folder that cargo gave can be written");
}

/// The files below a folder, each with its path from the first one.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(name) = path.strip_prefix(root) {
            files.push((name.to_string_lossy().replace('\\', "/"), path));
        }
    }
}
