//! The files that people write: those that git would list, found without git.

use std::path::Path;

/// Folders that hold none of them, at the root of the repository.
const SKIPPED: [&str; 2] = [".git", "target"];

/// Files written by programs.
const WRITTEN_BY_PROGRAMS: [&str; 2] = ["Cargo.lock", "LICENSE"];

/// How a generated file begins.
const GENERATED: &str = "// @generated";

/// A text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All of them.
pub(crate) fn files(root: &Path) -> std::io::Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if SKIPPED.contains(&path.as_str()) || WRITTEN_BY_PROGRAMS.contains(&path.as_str()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if let Ok(text) = String::from_utf8(std::fs::read(entry.path())?)
            && !text.starts_with(GENERATED)
        {
            files.push(File { path, text });
        }
    }
    Ok(())
}
