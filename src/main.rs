//! The `sift` command: everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: the child that runs own filters reads no arguments, no configuration and no environment.
    if std::env::args_os().nth(1).is_some_and(|word| word == sift::provider::FILTER_COMMAND) {
        return sift::provider::serve_filters();
    }
    ExitCode::from(sift::cli::run(std::env::args_os()).code())
}
