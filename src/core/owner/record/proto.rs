//! The records' fields and their numbers. A number is never used again for another meaning.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetaRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) hash_key: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(super) next_tenancy: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) ceiling: u64,
    /// Numbers 4 and 5 have never been used.
    #[prost(message, optional, tag = "6")]
    pub(super) anchor: Option<AnchorRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnchorRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) boot_id: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    pub(super) since_boot: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) service: u64,
    #[prost(sint64, tag = "4")]
    pub(super) slew: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MemberRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) replica: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub(super) incarnation: u64,
    #[prost(uint32, tag = "3")]
    pub(super) seat: u32,
    #[prost(fixed64, tag = "4")]
    pub(super) joined: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyRecord {
    #[prost(string, tag = "1")]
    pub(super) domain: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(uint64, tag = "3")]
    pub(super) period: u64,
    #[prost(fixed64, tag = "4")]
    pub(super) window_start: u64,
    #[prost(fixed64, tag = "5")]
    pub(super) window_end: u64,
    #[prost(uint64, tag = "6")]
    pub(super) limit: u64,
    #[prost(uint64, tag = "7")]
    pub(super) spent: u64,
    #[prost(uint64, tag = "8")]
    pub(super) dead: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) holders: Vec<HolderRecord>,
    #[prost(message, repeated, tag = "10")]
    pub(super) charges: Vec<ChargeRecord>,
    #[prost(message, repeated, tag = "11")]
    pub(super) askers: Vec<AskerRecord>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HolderRecord {
    #[prost(uint64, tag = "1")]
    pub(super) tenancy: u64,
    #[prost(uint64, tag = "2")]
    pub(super) generation: u64,
    #[prost(uint64, tag = "3")]
    pub(super) granted: u64,
    #[prost(bool, tag = "4")]
    pub(super) has_cell: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ChargeRecord {
    #[prost(fixed64, tag = "1")]
    pub(super) asker: u64,
    #[prost(uint64, tag = "2")]
    pub(super) sequence: u64,
    #[prost(uint32, tag = "3")]
    pub(super) cost: u32,
    #[prost(uint64, tag = "4")]
    pub(super) amount: u64,
    #[prost(fixed64, tag = "5")]
    pub(super) expires: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AskerRecord {
    #[prost(fixed64, tag = "1")]
    pub(super) asker: u64,
    #[prost(uint64, tag = "2")]
    pub(super) sequence: u64,
    #[prost(fixed64, tag = "3")]
    pub(super) window_start: u64,
    #[prost(fixed64, tag = "4")]
    pub(super) window_end: u64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) decisions: Vec<u8>,
}
