//! The folder: its lock, its format, its files, and why it cannot be opened.
//!
//! ```text
//! lock                  held by the process that has the store open
//! format                "headgate store 1"
//! NUMBER.log            frames from NUMBER on
//! NUMBER.snapshot       the records after all frames before NUMBER
//! NUMBER.snapshot.tmp   one being written
//! ```
//! Everything else in the folder (a volume's `lost+found`) is left alone.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

/// The version this program writes, and the only one it reads.
const FORMAT: u32 = 1;
const FORMAT_WORDS: &str = "headgate store ";

/// Why a folder cannot be used as a store. Each says what happened, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No right to write there, or a read-only file system.
    #[error(
        "cannot write to the data folder {}: {source}; give this user the right to write there, \
         or choose another folder with --data-dir", path.display()
    )]
    NotWritable {
        /// What could not be written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is a file.
    #[error("{} is not a folder; choose a folder with --data-dir", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error(
        "the data folder {} is in use by another process; stop that one, or choose another folder \
         with --data-dir", path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Made by a newer version of this program.
    #[error(
        "the data folder {} has format {found}, but this version of headgate knows only format \
         {FORMAT}; start the version that made it, or a newer one", path.display()
    )]
    Newer {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Something that this program never writes.
    #[error(
        "the data folder is damaged: {}: {what}; refusing to start, since limits counted from it \
         would be wrong. Restore the folder from a copy, or move it away to start with nothing \
         counted", path.display()
    )]
    Damaged {
        /// The file, or the folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Reading or writing failed otherwise.
    #[error(
        "cannot use the data folder: {}: {source}; check the disk and the path", path.display()
    )]
    Io {
        /// Where.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused a thread.
    #[error("cannot start the store's writer thread: {source}; check the process limits")]
    Thread {
        /// The system's reason.
        source: io::Error,
    },
}

impl OpenError {
    /// Sorts an error of the system.
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { path, source }
            }
            ErrorKind::NotADirectory => Self::NotAFolder { path },
            _ => Self::Io { path, source },
        }
    }
}

/// The folder, locked.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Unlocked by the system when this is closed.
    _lock: File,
}

/// The store's files in a folder, oldest first.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Snapshots with their numbers.
    pub(super) snapshots: Vec<(u64, PathBuf)>,
    /// Logs with their numbers.
    pub(super) logs: Vec<(u64, PathBuf)>,
    /// Snapshots that were never finished.
    pub(super) unfinished: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder if need be, locks it and checks its format.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                return Err(OpenError::NotAFolder {
                    path: path.to_path_buf(),
                });
            }
            Ok(_) => {}
            Err(_) => fs::create_dir_all(path).map_err(|error| OpenError::io(path, error))?,
        }
        let lock_path = path.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path);
        let lock = lock.map_err(|error| OpenError::io(path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked {
                    path: path.to_path_buf(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(OpenError::io(&lock_path, error)),
        }
        let folder = Self {
            path: path.to_path_buf(),
            _lock: lock,
        };
        folder.check_format()?;
        Ok(folder)
    }

    fn check_format(&self) -> Result<(), OpenError> {
        let path = self.path.join("format");
        let damaged = |what: String| OpenError::Damaged {
            path: path.clone(),
            what,
        };
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let files = self.files()?;
                if !files.logs.is_empty() || !files.snapshots.is_empty() {
                    return Err(damaged(
                        "it is missing, but there are logs or snapshots".into(),
                    ));
                }
                return self
                    .write_format(&path)
                    .map_err(|error| OpenError::io(&path, error));
            }
            Err(error) => return Err(OpenError::io(&path, error)),
        };
        let version = text
            .strip_prefix(FORMAT_WORDS)
            .and_then(|rest| rest.trim_end().parse().ok());
        match version {
            Some(FORMAT) => Ok(()),
            Some(found) if found > FORMAT => Err(OpenError::Newer {
                path: self.path.clone(),
                found,
            }),
            _ => {
                let start: String = text.chars().take(40).collect();
                Err(damaged(format!(
                    "{start:?} is not the format of a headgate store"
                )))
            }
        }
    }

    fn write_format(&self, path: &Path) -> io::Result<()> {
        let unfinished = self.path.join("format.tmp");
        let mut file = File::create(&unfinished)?;
        writeln!(file, "{FORMAT_WORDS}{FORMAT}")?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        self.sync()?;
        // The folder itself may be new in its own folder.
        match self
            .path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Makes names that were added, changed or removed durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Path of the log that starts with a frame.
    pub(super) fn log(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}.log"))
    }

    /// Path of the snapshot before a frame.
    pub(super) fn snapshot(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}.snapshot"))
    }

    /// Path of that snapshot while it is written.
    pub(super) fn unfinished_snapshot(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:020}.snapshot.tmp"))
    }

    /// Lists the store's files.
    pub(super) fn files(&self) -> Result<Files, OpenError> {
        let io = |error| OpenError::io(&self.path, error);
        let mut files = Files::default();
        for entry in fs::read_dir(&self.path).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let Some((number, kind)) = name.split_once('.') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match kind {
                "log" => files.logs.push((number, path)),
                "snapshot" => files.snapshots.push((number, path)),
                "snapshot.tmp" => files.unfinished.push(path),
                _ => {}
            }
        }
        files.logs.sort();
        files.snapshots.sort();
        Ok(files)
    }
}
