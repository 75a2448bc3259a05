//! The log that frames are appended to.

#[cfg(test)]
use std::sync::{Arc, Mutex};
use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

/// Why a frame is not durable.
#[derive(Debug)]
pub(super) enum WriteError {
    /// The log is as before.
    NotWritten(io::Error),
    /// Nobody can say what is on the disk, now or later. After a failed sync the system may have
    /// thrown the pages away, so that a second sync would wrongly succeed: no further write.
    Unknown(io::Error),
}

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Where the next frame goes; every byte before it is synced.
    end: u64,
    #[cfg(test)]
    fault: FaultCell,
}

/// How the next write of a frame fails.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskFault {
    /// Half of it is written, then the disk is full.
    BeforeWrite,
    /// The same, and the half can not be taken back.
    BeforeWriteStuck,
    /// It is written, but the sync fails.
    AfterWrite,
}

#[cfg(test)]
pub(super) type FaultCell = Arc<Mutex<Option<DiskFault>>>;

impl Log {
    /// Opens a log, or makes it, cutting off what follows its sound frames. The caller makes a new
    /// name durable.
    pub(super) fn open(path: &Path, end: u64) -> io::Result<Self> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        if file.metadata()?.len() != end {
            file.set_len(end)?;
            file.sync_all()?;
        }
        Ok(Self {
            file,
            end,
            #[cfg(test)]
            fault: FaultCell::default(),
        })
    }

    /// Appends a frame and makes it durable.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), WriteError> {
        if let Err(error) = self.write(frame) {
            return match self.take_back() {
                Ok(()) => Err(WriteError::NotWritten(error)),
                Err(_) => Err(WriteError::Unknown(error)),
            };
        }
        self.sync().map_err(WriteError::Unknown)?;
        self.end = self.end.saturating_add(frame.len() as u64);
        Ok(())
    }

    #[cfg(not(test))]
    fn write(&self, frame: &[u8]) -> io::Result<()> {
        self.file.write_all_at(frame, self.end)
    }

    fn take_back(&self) -> io::Result<()> {
        #[cfg(test)]
        self.fault_if(|fault| matches!(fault, DiskFault::BeforeWriteStuck))?;
        self.file.set_len(self.end)?;
        self.file.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        self.fault_if(|fault| matches!(fault, DiskFault::AfterWrite))?;
        self.file.sync_data()
    }
}

#[cfg(test)]
impl Log {
    pub(super) fn fault_cell(&self) -> FaultCell {
        Arc::clone(&self.fault)
    }

    pub(super) fn with_faults(mut self, fault: FaultCell) -> Self {
        self.fault = fault;
        self
    }

    fn write(&self, frame: &[u8]) -> io::Result<()> {
        let fault = *self.fault.lock().unwrap();
        if let Some(DiskFault::BeforeWrite | DiskFault::BeforeWriteStuck) = fault {
            self.file
                .write_all_at(&frame[..frame.len() / 2], self.end)?;
            self.fault_if(|fault| matches!(fault, DiskFault::BeforeWrite))?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(frame, self.end)
    }

    fn fault_if(&self, applies: impl Fn(DiskFault) -> bool) -> io::Result<()> {
        match self.fault.lock().unwrap().take_if(|fault| applies(*fault)) {
            Some(_) => Err(io::ErrorKind::StorageFull.into()),
            None => Ok(()),
        }
    }
}
