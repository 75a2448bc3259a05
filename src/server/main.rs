//! The `headgate` command: exit code 0 after a clean stop, 1 after a failure with one sentence on
//! standard error, 2 for wrong usage.

use std::io::Write;

use headgate::{
    args::{Args, Command},
    logging, owner,
    serve::{self, Failure},
};

fn main() {
    let args = Args::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let Command::Serve(serve) = args.command;
    logging::start(&serve);
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::System)
        .and_then(|runtime| {
            let result = runtime.block_on(serve::serve(&serve, owner::build));
            // Whatever still runs was given its time, or hangs.
            runtime.shutdown_background();
            result
        });
    if let Err(failure) = result {
        // Nobody may be there to read it; the exit code stays.
        drop(writeln!(std::io::stderr(), "headgate: {failure}"));
        std::process::exit(1);
    }
}
