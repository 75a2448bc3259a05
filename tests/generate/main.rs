//! Writes the Rust code of `proto/` into the repository, or checks that it is up to date.
//!
//! It is a package of its own and depends on none of the crates it writes for, so that it builds
//! when they do not, which is the case exactly when the wire format has just changed.

mod output;
mod proto;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: generate [--check]
  Writes the Rust code of proto/ into src/. With --check it writes nothing and fails
  if what is there differs from what it would write.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        [] => generate(&root()).and_then(|files| output::write_all(&root(), &files)),
        ["--check"] => generate(&root()).and_then(|files| output::check_all(&root(), &files)),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown arguments {other:?}\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("generate: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// All files that belong to the definitions under `root`, as they should be.
fn generate(root: &Path) -> Result<Vec<output::File>, String> {
    let definitions = proto::compile(&root.join("proto"))?;
    Ok(vec![
        output::File {
            path: "src/core/wire/headgate.v1.rs",
            content: output::format(root, &proto::messages(&definitions)?)?.into_bytes(),
        },
        output::File {
            path: "src/server/rpc/headgate.v1.rs",
            content: output::format(root, &proto::stubs(&definitions)?)?.into_bytes(),
        },
        output::File {
            path: "src/server/rpc/headgate.v1.bin",
            content: definitions.descriptors,
        },
    ])
}

/// The folder of the workspace: this package lives in `tests/generate`.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
