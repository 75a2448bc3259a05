//! The plugin's file: one, and small.

use anyhow::Result;
use headgate_tests::scene::artefact;

/// Largest plugin, in bytes. Every Envoy of a mesh fetches it, keeps it, and compiles it anew at
/// each start. It has 436,000; what is left does not hide what comes along uninvited (one float in
/// a message brings 30,000 with it). What is worth its room may raise this.
const PLUGIN_BYTES_MAX: usize = 450_000;

#[test]
fn the_plugin_is_small() -> Result<()> {
    let plugin = std::fs::read(artefact("HEADGATE_WASM", "headgate.wasm")?)?;
    assert!(plugin.starts_with(b"\0asm"), "not WebAssembly");
    let size = plugin.len();
    assert!(
        size <= PLUGIN_BYTES_MAX,
        "{size} bytes, {PLUGIN_BYTES_MAX} are the most; build it with \
         `--config profile.plugin.strip=false` and look which functions are new"
    );
    Ok(())
}
