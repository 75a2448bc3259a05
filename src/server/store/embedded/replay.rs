//! Reads the files back, in order, and tells a torn last frame from damage.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{
    folder::{Files, Folder, OpenError},
    frame::{self, Entry, HEADER, Header, MAX_PAYLOAD},
};
use crate::store::Epoch;

/// Read-ahead of a file in bytes: large enough for a disk to stream.
const READ_BUFFER: usize = 256 * 1024;

/// The files that hold the present state: a snapshot, if there is one, and the logs after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    /// The snapshot before frame `.0`.
    pub(super) snapshot: Option<(u64, PathBuf)>,
    /// Logs with their first frames, without a gap.
    pub(super) logs: Vec<(u64, PathBuf)>,
}

/// Where a change was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Each key at most once, and no deletions.
    Snapshot,
    /// Later changes replace earlier ones and the snapshot's records.
    Log,
}

/// What reading a chain found beside its changes.
#[derive(Debug)]
pub(super) struct Contents {
    /// Number of the next frame.
    pub(super) next: u64,
    /// The highest epoch.
    pub(super) epoch: Epoch,
    /// Size of the snapshot.
    pub(super) snapshot_bytes: u64,
    /// Size of all logs, sound frames only.
    pub(super) log_bytes: u64,
    /// Sound bytes of the last log.
    pub(super) last_log_bytes: u64,
    /// Bytes after those: a frame whose write a crash cut off.
    pub(super) torn_bytes: u64,
}

impl Chain {
    /// Sorts the files of a folder into the chain and what no longer counts.
    pub(super) fn of(folder: &Folder, files: Files) -> Result<(Self, Vec<PathBuf>), OpenError> {
        let Files {
            mut snapshots,
            mut logs,
            unfinished: mut stale,
        } = files;
        let snapshot = snapshots.pop();
        let first = snapshot.as_ref().map_or(1, |(number, _)| *number);
        stale.extend(snapshots.into_iter().map(|(_, path)| path));
        let current = logs.split_off(logs.partition_point(|(number, _)| *number < first));
        if snapshot.is_some() {
            stale.extend(logs.into_iter().map(|(_, path)| path));
        }
        let fresh = snapshot.is_none() && current.is_empty();
        if !fresh && current.first().is_none_or(|(number, _)| *number != first) {
            return Err(missing(folder.log(first)));
        }
        Ok((
            Self {
                snapshot,
                logs: current,
            },
            stale,
        ))
    }

    /// Gives every change in order to `visit`, and every file's checksums a look.
    pub(super) fn replay(
        &self,
        mut visit: impl FnMut(Part, &[u8], Option<&[u8]>),
    ) -> Result<Contents, OpenError> {
        let mut contents = Contents {
            next: 1,
            epoch: Epoch::new(0),
            snapshot_bytes: 0,
            log_bytes: 0,
            last_log_bytes: 0,
            torn_bytes: 0,
        };
        if let Some((number, path)) = &self.snapshot {
            contents.snapshot_bytes =
                self.replay_snapshot(path, &mut contents.epoch, &mut visit)?;
            contents.next = *number;
        }
        for (number, path) in &self.logs {
            if contents.torn_bytes > 0 {
                return Err(damaged(
                    path,
                    "an older log ends in the middle of a frame".into(),
                ));
            }
            if *number != contents.next {
                let what = format!("it starts at frame {number} instead of {}", contents.next);
                return Err(damaged(path, what));
            }
            let mut frames = Frames::open(path, *number)?;
            while let Some((epoch, payload)) = frames.next()? {
                contents.epoch = contents.epoch.max(epoch);
                frame::decode(payload, |entry| {
                    if let Entry::Change(key, value) = entry {
                        visit(Part::Log, key, value);
                    }
                });
            }
            contents.next = frames.number;
            contents.last_log_bytes = frames.offset;
            contents.log_bytes = contents.log_bytes.saturating_add(frames.offset);
            contents.torn_bytes = frames.size.saturating_sub(frames.offset);
        }
        Ok(contents)
    }

    fn replay_snapshot(
        &self,
        path: &Path,
        highest: &mut Epoch,
        visit: &mut impl FnMut(Part, &[u8], Option<&[u8]>),
    ) -> Result<u64, OpenError> {
        let (mut records, mut expected) = (0_u64, None);
        let mut frames = Frames::open(path, 1)?;
        while let Some((epoch, payload)) = frames.next()? {
            *highest = epoch.max(*highest);
            frame::decode(payload, |entry| match entry {
                Entry::Change(key, value) => {
                    records = records.saturating_add(1);
                    visit(Part::Snapshot, key, value);
                }
                Entry::End(count) => expected = Some(count),
            });
        }
        if expected != Some(records) || frames.offset != frames.size {
            return Err(damaged(path, "its end is missing".into()));
        }
        Ok(frames.size)
    }
}

/// A file's frames, one after the other.
struct Frames<'p> {
    path: &'p Path,
    file: BufReader<File>,
    size: u64,
    /// Where the next frame starts; at the end, where sound frames end.
    offset: u64,
    /// Of the next frame.
    number: u64,
    payload: Vec<u8>,
}

impl<'p> Frames<'p> {
    fn open(path: &'p Path, number: u64) -> Result<Self, OpenError> {
        let io = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => missing(path.to_path_buf()),
            _ => OpenError::io(path, error),
        };
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let file = BufReader::with_capacity(READ_BUFFER, file);
        Ok(Self {
            path,
            file,
            size,
            offset: 0,
            number,
            payload: Vec::new(),
        })
    }

    /// The next frame's payload, which can be decoded. `None` at the end of the sound frames; if
    /// bytes follow there, they are a torn frame.
    fn next(&mut self) -> Result<Option<(Epoch, &[u8])>, OpenError> {
        let left = self.size.saturating_sub(self.offset);
        if left == 0 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER];
        if left < HEADER as u64 || self.read(&mut bytes)?.is_none() {
            return Ok(None);
        }
        let Some(header) = Header::decode(&bytes) else {
            return self.torn_or_damaged(&bytes).map(|()| None);
        };
        if header.number != self.number {
            let what = format!("frame {} instead of {}", header.number, self.number);
            return Err(self.damaged(&what));
        }
        let end = u64::from(header.length).saturating_add(HEADER as u64);
        if left < end {
            return Ok(None);
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(usize::try_from(header.length).unwrap_or(MAX_PAYLOAD), 0);
        let complete = self.read(&mut payload)?.is_some();
        self.payload = payload;
        if !complete || !header.matches(&self.payload) {
            // A frame is written only after the one before it was synced, so one that has a
            // successor was whole once.
            let last = left == end;
            return if last {
                Ok(None)
            } else {
                Err(self.damaged("a frame's checksum is wrong"))
            };
        }
        let Some(epoch) = frame::decode(&self.payload, |_| {}) else {
            return Err(self.damaged("a frame's content cannot be understood"));
        };
        self.offset = self.offset.saturating_add(end);
        self.number = self.number.saturating_add(1);
        Ok(Some((epoch, &self.payload)))
    }

    /// After a header that does not check its length is unknown: the frame is torn if nothing
    /// that was written after it can be found.
    fn torn_or_damaged(&mut self, header: &[u8; HEADER]) -> Result<(), OpenError> {
        let left = self.size.saturating_sub(self.offset);
        if left > (HEADER + MAX_PAYLOAD) as u64 {
            return Err(self.damaged("a frame's header is wrong"));
        }
        let mut rest = header.to_vec();
        let read = self.file.read_to_end(&mut rest);
        read.map_err(|error| OpenError::io(self.path, error))?;
        let later_frame = |start: usize| -> Option<()> {
            let (header, rest) = rest.get(start..)?.split_first_chunk::<HEADER>()?;
            let header = Header::decode(header).filter(|header| header.number > self.number)?;
            let payload = rest.get(..usize::try_from(header.length).ok()?)?;
            header.matches(payload).then_some(())
        };
        match (1..rest.len()).find_map(later_frame) {
            Some(()) => Err(self.damaged("a frame's header is wrong")),
            None => Ok(()),
        }
    }

    /// `None` at the end of the file.
    fn read(&mut self, bytes: &mut [u8]) -> Result<Option<()>, OpenError> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(OpenError::io(self.path, error)),
        }
    }

    fn damaged(&self, what: &str) -> OpenError {
        damaged(self.path, format!("{what} at byte {}", self.offset))
    }
}

fn damaged(path: &Path, what: String) -> OpenError {
    OpenError::Damaged {
        path: path.to_path_buf(),
        what,
    }
}

fn missing(path: PathBuf) -> OpenError {
    OpenError::Damaged {
        path,
        what: "it is missing".into(),
    }
}
