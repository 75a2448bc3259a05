//! Formats, writes and compares the files.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A generated file.
pub(crate) struct File {
    /// Below the workspace's folder.
    pub(crate) path: &'static str,
    /// All of it.
    pub(crate) content: Vec<u8>,
}

/// Formats source with the toolchain's `rustfmt` and the workspace's settings.
pub(crate) fn format(root: &Path, source: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| {
        format!("cannot run rustfmt: {error}; install it with `rustup component add rustfmt`")
    };
    let mut rustfmt = Command::new("rustfmt")
        .arg("--config-path")
        .arg(root.join("rustfmt.toml"))
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Dropped at the end of the statement, which is the end of its input. It reads all of that
    // before it writes anything, so neither side waits for the other.
    rustfmt
        .stdin
        .take()
        .ok_or("rustfmt has no input")?
        .write_all(source.as_bytes())
        .map_err(failed)?;
    let output = rustfmt.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!(
            "rustfmt refused the generated code ({})",
            output.status
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("rustfmt's output: {error}"))
}

/// Writes what differs, and says so.
pub(crate) fn write_all(root: &Path, files: &[File]) -> Result<(), String> {
    for file in files {
        let path = root.join(file.path);
        if std::fs::read(&path).is_ok_and(|present| present == file.content) {
            println!("up to date: {}", file.path);
            continue;
        }
        let failed = |error| format!("cannot write {}: {error}", file.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(&path, &file.content).map_err(failed)?;
        println!("written: {}", file.path);
    }
    Ok(())
}

/// Fails with the name of every file that is missing or differs.
pub(crate) fn check_all(root: &Path, files: &[File]) -> Result<(), String> {
    let stale: Vec<&str> = files
        .iter()
        .filter(|file| {
            !std::fs::read(root.join(file.path)).is_ok_and(|present| present == file.content)
        })
        .map(|file| file.path)
        .collect();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not what proto/ defines: {}; run `./build.sh generate` and commit the result",
        stale.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::{File, check_all, format, write_all};

    fn scratch(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder for this test");
        folder
    }

    #[test]
    fn a_missing_or_changed_file_is_named_and_a_written_one_passes() {
        let root = scratch("generate");
        let file = || {
            vec![File {
                path: "a/b.rs",
                content: b"x".to_vec(),
            }]
        };
        let sentence = check_all(&root, &file()).expect_err("nothing is there yet");
        assert!(sentence.contains("a/b.rs"), "{sentence}");
        write_all(&root, &file()).expect("written");
        check_all(&root, &file()).expect("what was written is up to date");
        std::fs::write(root.join("a/b.rs"), b"y").expect("changed");
        let sentence = check_all(&root, &file()).expect_err("it was changed by hand");
        assert!(sentence.contains("./build.sh generate"), "{sentence}");
        std::fs::remove_dir_all(&root).expect("removed");
    }

    #[test]
    fn output_is_formatted_and_nonsense_refused() {
        let root = super::super::root();
        assert_eq!(
            format(&root, "fn  a( ){}").expect("formatted"),
            "fn a() {}\n"
        );
        assert!(format(&root, "fn fn").is_err());
    }
}
