//! Says where the data, the configuration and the instructions of this Polis are. What agents may do there is decided by
//! [`ProtectedPaths`], for file tools and commands alike.

use std::io;
use std::path::{Path, PathBuf};

use polis_tools::ProtectedPaths;

/// What agents may not write, and what they may not even read. The workspace must exist; the rest need not.
pub(crate) fn protected(
    workspace: &Path,
    data: &Path,
    settings: &[PathBuf],
    scripts: &[PathBuf],
    packages: &[PathBuf],
) -> io::Result<ProtectedPaths> {
    let here = std::env::current_dir()?.canonicalize()?;
    let hidden = settings.iter().map(PathBuf::as_path).chain([data]).map(|path| real(&here, path));
    let list = ProtectedPaths::new(workspace.canonicalize()?).with_hidden(hidden);
    let list = list.with_scripts(scripts.iter().map(|path| real(&here, path)));
    let loaded = packages.iter().map(|path| real(&here, path));
    Ok(list.with_loaded(loaded).with_base(here.clone()))
}

/// A path without links, whether or not it exists.
fn real(here: &Path, path: &Path) -> PathBuf {
    let whole = here.join(path);
    // Put together by its parts: joined with nothing, a path gets a slash at its end, and the kernel takes it for a folder.
    let place =
        |part: &Path| Some(part.canonicalize().ok()?.components().chain(whole.strip_prefix(part).ok()?.components()).collect());
    whole.ancestors().find_map(place).unwrap_or_else(|| whole.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_real_whether_or_not_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("data")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("data", root.join("link")).unwrap();
        for (path, want) in [("data", "data"), ("link/token", "data/token"), ("new/deep/file", "new/deep/file")] {
            assert_eq!(real(&root, Path::new(path)).as_os_str(), root.join(want).as_os_str(), "{path}");
        }
    }
}
