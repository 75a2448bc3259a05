//! A wall clock that can be stepped for one process alone: a small library, compiled by the C
//! compiler that Rust links with, is preloaded into it and adds the seconds of a file. (Debian's
//! libfaketime was tried first; an Envoy with it hangs at its start.)

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::scene::Scene;

/// A clock, for one process or several.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
}

impl WallClock {
    /// One that is right at first.
    ///
    /// # Errors
    /// When there is no C compiler, or the folder cannot be written.
    pub fn new(scene: &Scene) -> Result<Self> {
        let library = scene.folder().join("wall_clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/wall_clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"])
            .arg(&library)
            .arg(source)
            .output()
            .context("cannot run cc, the C compiler that Rust links with")?;
        ensure!(
            built.status.success(),
            "cc cannot compile {source}: {}",
            String::from_utf8_lossy(&built.stderr)
        );
        let path = scene.folder().join("wall_clock");
        let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
        let clock = Self {
            library,
            path,
            file,
        };
        clock.ahead(0)?;
        Ok(clock)
    }

    /// The environment of a process that has this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &PathBuf| path.display().to_string();
        vec![
            ("LD_PRELOAD".to_owned(), text(&self.library)),
            ("HEADGATE_TESTS_WALL_CLOCK".to_owned(), text(&self.path)),
        ]
    }

    /// Steps it to so many seconds ahead of the machine's own, or behind it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn ahead(&self, seconds: i64) -> Result<()> {
        self.file
            .write_all_at(&seconds.to_ne_bytes(), 0)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}
