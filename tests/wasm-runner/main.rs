//! wasm-bindgen's test runner, as a package of this workspace.
//!
//! The runner must be of exactly the release of the library that it runs. Installed by itself it
//! has a lock file of its own and can drift; here one `Cargo.lock` holds both, and cargo refuses
//! two that do not fit.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
