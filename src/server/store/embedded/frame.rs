//! One frame: what is written, synced and read back as a whole.
//!
//! ```text
//! 0   magic       4 bytes  "HGF1"
//! 4   length      u32      of the payload
//! 8   number      u64      one more than the frame before
//! 16  payload crc u32
//! 20  header crc  u32      of the 20 bytes before it
//! 24  payload
//!
//! payload: epoch u64, then entries: put    1, key length u16, value length u32, key, value
//!                                   delete 2, key length u16, key
//!                                   end    3, number of records u64 (last of a snapshot)
//! ```
//! Integers are little-endian; checksums are CRC-32.

use super::super::{Epoch, MAX_BATCH_BYTES};

/// Size of the header in bytes.
pub(super) const HEADER: usize = 24;

/// Longest payload in bytes. A group takes batches while it is below half of this, about what a
/// disk writes in the time of one sync, and a last whole batch fits above that.
pub(super) const MAX_PAYLOAD: usize = 4 * 1024 * 1024;

/// A group is closed when its payload has reached this many bytes.
pub(super) const FULL_PAYLOAD: usize = MAX_PAYLOAD / 2;

const _: () = assert!(FULL_PAYLOAD + MAX_BATCH_BYTES < MAX_PAYLOAD);

const MAGIC: [u8; 4] = *b"HGF1";
const PUT: u8 = 1;
const DELETE: u8 = 2;
const END: u8 = 3;

/// One entry of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// A record and its value, `None` for a deletion.
    Change(&'a [u8], Option<&'a [u8]>),
    /// A snapshot ends here and has this many records.
    End(u64),
}

/// A frame being built.
#[derive(Debug)]
pub(super) struct Builder {
    bytes: Vec<u8>,
}

impl Builder {
    /// A frame without entries.
    pub(super) fn new(epoch: Epoch) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes.extend(epoch.get().to_le_bytes());
        Self { bytes }
    }

    /// Adds an entry. Keys and values are within the bounds of a batch, far below their lengths'.
    pub(super) fn push(&mut self, entry: Entry<'_>) {
        let key_length = |key: &[u8]| u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes();
        match entry {
            Entry::Change(key, Some(value)) => {
                self.bytes.push(PUT);
                self.bytes.extend(key_length(key));
                self.bytes
                    .extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
                self.bytes.extend(key);
                self.bytes.extend(value);
            }
            Entry::Change(key, None) => {
                self.bytes.push(DELETE);
                self.bytes.extend(key_length(key));
                self.bytes.extend(key);
            }
            Entry::End(records) => {
                self.bytes.push(END);
                self.bytes.extend(records.to_le_bytes());
            }
        }
    }

    /// No batch fits any more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_PAYLOAD
    }

    /// The finished frame.
    pub(super) fn finish(self, number: u64) -> Vec<u8> {
        let mut bytes = self.bytes;
        let Some((header, payload)) = bytes.split_first_chunk_mut::<HEADER>() else {
            return bytes;
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        *header = Header {
            length,
            number,
            payload_crc: crc32fast::hash(payload),
        }
        .encode();
        bytes
    }
}

/// A header whose own checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Of the payload, in bytes.
    pub(super) length: u32,
    /// Of the frame.
    pub(super) number: u64,
    /// Checksum of the payload.
    pub(super) payload_crc: u32,
}

impl Header {
    fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields = MAGIC
            .into_iter()
            .chain(self.length.to_le_bytes())
            .chain(self.number.to_le_bytes())
            .chain(self.payload_crc.to_le_bytes());
        bytes
            .iter_mut()
            .zip(fields)
            .for_each(|(byte, field)| *byte = field);
        if let Some((fields, crc)) = bytes.split_last_chunk_mut::<4>() {
            *crc = crc32fast::hash(fields).to_le_bytes();
        }
        bytes
    }

    /// Reads a header; `None` if it is not one.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let (fields, crc) = bytes.split_last_chunk::<4>()?;
        let (magic, rest) = fields.split_first_chunk::<4>()?;
        let mut rest = Reader(rest);
        let (length, number) = (rest.u32()?, rest.u64()?);
        let header = Self {
            length,
            number,
            payload_crc: rest.u32()?,
        };
        let fits = usize::try_from(length).is_ok_and(|length| length <= MAX_PAYLOAD);
        let sound = *magic == MAGIC && crc32fast::hash(fields).to_le_bytes() == *crc;
        (sound && fits).then_some(header)
    }

    /// The payload's checksum is right.
    pub(super) fn matches(&self, payload: &[u8]) -> bool {
        usize::try_from(self.length).is_ok_and(|length| length == payload.len())
            && crc32fast::hash(payload) == self.payload_crc
    }
}

/// Gives each entry of a payload to `visit`. `None` if the payload cannot be understood.
pub(super) fn decode<'a>(payload: &'a [u8], mut visit: impl FnMut(Entry<'a>)) -> Option<Epoch> {
    let mut rest = Reader(payload);
    let epoch = Epoch::new(rest.u64()?);
    while let Some(kind) = rest.u8() {
        visit(match kind {
            PUT => {
                let (key, value) = (rest.u16()?, rest.u32()?);
                let key = rest.take(usize::from(key))?;
                Entry::Change(key, Some(rest.take(usize::try_from(value).ok()?)?))
            }
            DELETE => {
                let key = rest.u16()?;
                Entry::Change(rest.take(usize::from(key))?, None)
            }
            END => Entry::End(rest.u64()?),
            _ => return None,
        });
    }
    Some(epoch)
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
