//! The `headgate` command.
fn main() {}
