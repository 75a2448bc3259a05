//! A test with a place for its logs and an end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The longest a scene may take; a test that hangs fails instead.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// Threads of a scene's runtime: upstream, fakes and load share the machine with the Envoys.
const THREADS: usize = 2;

/// Where a test keeps what it writes.
#[derive(Debug)]
pub struct Scene {
    folder: PathBuf,
}

impl Scene {
    /// A folder of this scene alone, removed at the end if the test has passed.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Runs a test with a runtime, a folder below `target/logs` and [`DEADLINE`].
///
/// # Errors
/// The body's own, or that it took too long. The folder is kept then, and named.
pub fn run(name: &str, body: impl AsyncFnOnce(&Scene) -> Result<()>) -> Result<()> {
    run_within(DEADLINE, name, body)
}

/// As [`run`], with another deadline.
///
/// # Errors
/// As those of [`run`].
pub fn run_within(
    deadline: Duration,
    name: &str,
    body: impl AsyncFnOnce(&Scene) -> Result<()>,
) -> Result<()> {
    let folder = target_folder().join("logs").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let scene = Scene { folder };
    let kept = Kept(&scene.folder);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async { tokio::time::timeout(deadline, body(&scene)).await });
    match outcome {
        Ok(Ok(())) => {
            std::mem::forget(kept);
            std::fs::remove_dir_all(&scene.folder)
                .with_context(|| format!("cannot remove {}", scene.folder.display()))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => bail!("{name} did not end within {deadline:?}"),
    }
}

/// Says where the logs are when a scene ends in any way but well, a panic included.
struct Kept<'a>(&'a Path);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        eprintln!("logs kept in {}", self.0.display());
    }
}

/// Cargo's target folder.
#[must_use]
pub fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
    }
}

/// The file that an environment variable names, else the one of this name in the target folder.
///
/// # Errors
/// When there is no such file; says how to make it.
pub fn artefact(variable: &str, name: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map_or_else(|| target_folder().join(name), PathBuf::from);
    let path = std::path::absolute(path)?;
    if !path.is_file() {
        bail!(
            "{} is not there: run `./build.sh build`, or set ${variable}",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::{Scene, run, run_within};
    use std::time::Duration;

    #[test]
    fn the_folder_of_a_good_scene_goes_and_that_of_a_bad_one_stays() {
        let mut folder = None;
        run("scene-good", async |scene: &Scene| {
            folder = Some(scene.folder().to_owned());
            assert!(scene.folder().is_dir());
            Ok(())
        })
        .expect("passes");
        assert!(!folder.expect("a folder").exists());

        let mut folder = None;
        let error = run("scene-bad", async |scene: &Scene| {
            folder = Some(scene.folder().to_owned());
            anyhow::bail!("it does")
        })
        .expect_err("fails");
        assert_eq!(error.to_string(), "it does");
        let folder = folder.expect("a folder");
        assert!(folder.is_dir());
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_scene_that_hangs_fails() {
        let mut folder = None;
        let outcome = run_within(
            Duration::from_millis(10),
            "scene-hangs",
            async |scene: &Scene| {
                folder = Some(scene.folder().to_owned());
                std::future::pending().await
            },
        );
        assert!(
            outcome
                .expect_err("hangs")
                .to_string()
                .contains("scene-hangs")
        );
        std::fs::remove_dir_all(folder.expect("a folder")).expect("removed");
    }
}
