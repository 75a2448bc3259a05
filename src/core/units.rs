//! Quantities with their units, so that a count is never mistaken for a time nor one clock for
//! another. Arithmetic saturates: an amount that leaves `u64` is a bound reached, not a wrap.

use std::fmt;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number.
            #[must_use]
            pub const fn new(value: $inner) -> Self {
                Self(value)
            }

            /// The bare number, for formats and formatting.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity! {
    /// A number of tokens.
    Tokens(u64)
}
quantity! {
    /// A rate: tokens per 1,000 seconds, so that a token an hour is not rounded away.
    Rate(u64)
}
quantity! {
    /// A duration in nanoseconds.
    Span(u64)
}
quantity! {
    /// An instant of service time: nanoseconds since the Unix epoch as the leading counter counts.
    ServiceTime(u64)
}
quantity! {
    /// An instant of one machine's monotonic clock, in nanoseconds. Means nothing elsewhere.
    LocalTime(u64)
}
quantity! {
    /// Counts the fences of one lease; a grant of an older generation is void.
    Generation(u64)
}
quantity! {
    /// Counts the leaders of the counter service; a word of a lower epoch is void.
    Epoch(u64)
}
quantity! {
    /// A replica's numbered place in the fleet.
    Seat(u32)
}
quantity! {
    /// Counts the tenancies of one replica, by the replica.
    Incarnation(u64)
}
quantity! {
    /// Counts all tenancies of all seats, by the service; never used twice.
    Tenancy(u64)
}
quantity! {
    /// A worker that asks, random.
    Asker(u64)
}
quantity! {
    /// Numbers the asks of one asker; the same number is the same ask.
    Sequence(u64)
}
quantity! {
    /// A replica's random identity.
    ReplicaId(u128)
}

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// The sum, at most `u64::MAX`.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * numerator / denominator`, rounded down; zero for a zero denominator.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let product = u128::from(self.0).saturating_mul(u128::from(numerator));
        let quotient = product.checked_div(u128::from(denominator)).unwrap_or(0);
        Self(u64::try_from(quotient).unwrap_or(u64::MAX))
    }
}

impl Rate {
    /// No demand.
    pub const ZERO: Self = Self(0);

    /// The sum, at most `u64::MAX`.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Tokens in so much time, rounded down.
    #[must_use]
    pub fn over(self, span: Span) -> Tokens {
        Tokens::new(self.0).scaled(span.get(), Span::from_secs(1_000).get())
    }
}

impl std::iter::Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::plus)
    }
}

impl std::iter::Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::plus)
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// From milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// From seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

macro_rules! instant {
    ($name:ident) => {
        impl $name {
            /// The clock's origin.
            pub const ZERO: Self = Self(0);
            /// Later than every other instant.
            pub const MAX: Self = Self(u64::MAX);

            /// This much later, at most [`Self::MAX`].
            #[must_use]
            pub const fn plus(self, span: Span) -> Self {
                Self(self.0.saturating_add(span.0))
            }

            /// This much earlier, at least [`Self::ZERO`].
            #[must_use]
            pub const fn minus(self, span: Span) -> Self {
                Self(self.0.saturating_sub(span.0))
            }

            /// Time since an earlier instant; zero if it is not earlier.
            #[must_use]
            pub const fn since(self, earlier: Self) -> Span {
                Span(self.0.saturating_sub(earlier.0))
            }
        }
    };
}

instant!(ServiceTime);
instant!(LocalTime);

impl Generation {
    /// The generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Incarnation {
    /// The incarnation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Tenancy {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Sequence {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
