//! `sift help`: a command's help as `--help` shows it, or a topic.

use super::args::{Cli, Help, Topic};
use super::exit::Exit;
use super::report::CliError;
use super::stdout::print;
use crate::provider::nearest;
use clap::{Command, CommandFactory as _, ValueEnum as _};

/// Prints it.
///
/// # Errors
/// A word that is neither command nor topic.
pub(super) fn run(args: &Help) -> Result<Exit, CliError> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let topic = match words.as_slice() {
        // A command of the same name has its page among its own help.
        [word] => Topic::from_str(word, true).ok().filter(|topic| *topic != Topic::Providers),
        _ => None,
    };
    if let Some(topic) = topic {
        print(&format!("{}\n", topic.text()))?;
        return Ok(Exit::Ok);
    }
    let mut root = Cli::command();
    root.build();
    let mut command = &mut root;
    for word in words {
        let known: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
        if !known.iter().any(|name| name == word) {
            return Err(unknown(word, &known));
        }
        match command.find_subcommand_mut(word) {
            Some(below) => command = below,
            None => return Err(unknown(word, &known)),
        }
    }
    print(&long_help(command))?;
    Ok(Exit::Ok)
}

fn long_help(command: &mut Command) -> String {
    let help = command.render_long_help();
    // anstream takes the colours out again where they are not wanted.
    format!("{}\n", help.ansi().to_string().trim_end())
}

fn unknown(word: &str, commands: &[String]) -> CliError {
    let topics: Vec<String> = Topic::value_variants()
        .iter()
        .filter_map(clap::ValueEnum::to_possible_value)
        .map(|value| value.get_name().to_owned())
        .collect();
    let known = commands.iter().chain(&topics).map(String::as_str);
    let tip = nearest(word, known).map_or_else(
        || format!("commands: {}; topics: {}", commands.join(", "), topics.join(", ")),
        |near| format!("did you mean '{near}'?"),
    );
    CliError::usage(format!("there is no command or topic '{word}'"), tip)
}
