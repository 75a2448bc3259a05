//! Records of a fixed number of little-endian 64-bit words: the format of everything that a replica
//! keeps in shared memory. A field's place is a constant, and so is a record's size.

/// Bytes of one word.
pub const WORD_BYTES: usize = 8;

/// Reads words in order.
#[derive(Debug)]
pub struct WordReader<'a> {
    rest: &'a [u8],
}

impl<'a> WordReader<'a> {
    /// Reads from the start of these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next word; `None` at the end.
    pub fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.rest.split_first_chunk::<WORD_BYTES>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// The next two words as one number, the lower half first.
    pub fn double(&mut self) -> Option<u128> {
        let low = self.word()?;
        let high = self.word()?;
        Some(u128::from(high) << 64 | u128::from(low))
    }

    /// The next word as a signed number.
    pub fn signed(&mut self) -> Option<i64> {
        self.word().map(u64::cast_signed)
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Writes words in order.
#[derive(Debug, Default)]
pub struct WordWriter {
    bytes: Vec<u8>,
}

impl WordWriter {
    /// With room for this many words.
    #[must_use]
    pub fn with_words(words: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(words.saturating_mul(WORD_BYTES)),
        }
    }

    /// Adds a word.
    pub fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    /// Adds a length.
    pub fn length(&mut self, length: usize) {
        self.word(u64::try_from(length).unwrap_or(u64::MAX));
    }

    /// Adds two words, the lower half first.
    pub fn double(&mut self, double: u128) {
        self.bytes.extend_from_slice(&double.to_le_bytes());
    }

    /// Adds a signed number.
    pub fn signed(&mut self, word: i64) {
        self.word(word.cast_unsigned());
    }

    /// The bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
