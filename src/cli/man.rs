//! `sift man`: the man pages, made from the same words as the help.

use super::args::{Cli, Man, Topic};
use super::exit::Exit;
use super::report::CliError;
use crate::output::write_whole;
use clap::{Command, CommandFactory as _, ValueEnum as _};
use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::path::Path;

/// What the pages say about variables: the name, and what it is for.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("SIFT_CONFIG", "the configuration file, as --config"),
    ("SIFT_LOG, SIFT_LOG_FORMAT", "level and form of what is said on standard error"),
    ("SIFT_*", "every key of the configuration, as its path in capitals: SIFT_TIMEOUT, SIFT_INPUT_LIMIT"),
    ("SIFT_NAME_API_KEY", "a provider's key; its usual variable (VT_API_KEY, ABUSEIPDB_API_KEY) will do too"),
    ("CREDENTIALS_DIRECTORY", "keys from systemd's LoadCredential="),
    ("HTTPS_PROXY, NO_PROXY", "the proxy, and the hosts that are reached without it"),
    ("NO_COLOR, CLICOLOR_FORCE", "no colours at all; colours even where no terminal is"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME", "where files are kept"),
    ("CONFIGURATION_DIRECTORY, STATE_DIRECTORY", "the same under systemd, stronger"),
];

/// And about files.
const FILES: [(&str, &str); 5] = [
    ("~/.config/sift/config.toml", "the configuration; see sift-config(1)"),
    (
        "~/.config/sift/credentials.toml",
        "stored keys, readable by their owner alone; see sift-credentials(1)",
    ),
    (
        "~/.local/state/sift/sift.db",
        "answers, quota ledger, audit trail and queue; elsewhere with state_dir; see sift-cache(1)",
    ),
    ("~/.config/sift/providers/NAME.toml", "providers of your own; see sift-providers(1)"),
    ("/etc/sift/config.toml", "the machine's configuration, below your own"),
];

/// Writes a page for every command.
///
/// # Errors
/// A folder that is not there, or that cannot be written to.
pub(super) fn run(args: &Man) -> Result<Exit, CliError> {
    let mut root = Cli::command();
    root.build();
    let mut names = Vec::new();
    gather(&root, "sift", &mut names);
    write(&root, "sift", &names, &args.folder)?;
    Ok(Exit::Ok)
}

/// The names of all pages.
fn gather(command: &Command, name: &str, names: &mut Vec<String>) {
    names.push(name.to_owned());
    for below in shown(command) {
        gather(below, &format!("{name}-{}", below.get_name()), names);
    }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

fn write(command: &Command, name: &str, names: &[String], folder: &Path) -> Result<(), CliError> {
    let path = folder.join(format!("{name}.1"));
    let failed = |source| CliError::File { what: "write", path: path.clone(), source };
    write_whole(&path, &page(command, name, names).map_err(failed)?, 0o644).map_err(failed)?;
    for below in shown(command) {
        write(below, &format!("{name}-{}", below.get_name()), names, folder)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str, names: &[String]) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    // What -h leaves out would stand there without a word.
    let whole = command.clone().display_name(name).mut_args(|arg| arg.hide_short_help(false));
    let man = clap_mangen::Man::new(whole).title(name).manual("sift");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    if command.get_long_about().is_some_and(|long| long.to_string() != about) {
        man.render_description_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    if shown(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let after = after.unwrap_or_default();
    // The whole program's statuses follow in full.
    let short = if name == "sift" { after.split("\nExit status:").next().unwrap_or(&after) } else { &after };
    literal(&mut roff, short, "NOTES");
    if name == "sift" {
        general(&mut roff);
    }
    let related: Vec<&str> = names.iter().map(String::as_str).filter(|other| is_near(name, other)).collect();
    roff.control("SH", ["SEE ALSO"]);
    let mut see: Vec<Inline> = Vec::new();
    for other in related {
        if !see.is_empty() {
            see.push(roman(", "));
        }
        see.extend([bold(other), roman("(1)")]);
    }
    roff.text(see);
    roff.to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// The page above, and those right below.
fn is_near(name: &str, other: &str) -> bool {
    let parent = |name: &str| name.rsplit_once('-').map(|(parent, _)| parent.to_owned());
    name != other && (parent(other).as_deref() == Some(name) || parent(name).as_deref() == Some(other))
}

/// What holds for the whole program: the topics, variables, files.
fn general(roff: &mut Roff) {
    for topic in Topic::value_variants().iter().filter(|topic| **topic != Topic::Providers) {
        let (title, text) = topic.text().split_once('\n').unwrap_or((topic.text(), ""));
        let text = text.split("\nExample").next().unwrap_or(text);
        literal(roff, text, &title.split(':').next().unwrap_or(title).to_uppercase());
    }
    for (heading, entries) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        roff.control("SH", [heading]);
        for (name, what) in entries {
            roff.control("TP", []);
            roff.text([bold(*name)]);
            roff.text([roman(*what)]);
        }
    }
}

/// Text as it stands: `Examples:` and the like become headings of their own, the rest stands below `heading`.
fn literal(roff: &mut Roff, text: &str, heading: &str) {
    let mut heading = heading.to_owned();
    let mut block: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_suffix(':').filter(|title| is_heading(title)) {
            put(roff, &heading, &block);
            block.clear();
            title.to_uppercase().clone_into(&mut heading);
        } else {
            if !line.is_empty()
                && !line.starts_with(' ')
                && block.iter().any(|above| above.starts_with("  "))
                && heading == "EXAMPLES"
            {
                // Prose after the examples is no example.
                put(roff, &heading, &block);
                block.clear();
                "NOTES".clone_into(&mut heading);
            }
            block.push(line);
        }
    }
    put(roff, &heading, &block);
}

fn is_heading(title: &str) -> bool {
    matches!(title, "Example" | "Examples")
}

fn put(roff: &mut Roff, heading: &str, block: &[&str]) {
    let first = block.iter().position(|line| !line.trim().is_empty());
    let last = block.iter().rposition(|line| !line.trim().is_empty());
    let Some(block) = first.zip(last).and_then(|(first, last)| block.get(first..=last)) else { return };
    let heading = if heading == "EXAMPLE" { "EXAMPLES" } else { heading };
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in block {
        roff.text([roman(*line)]);
    }
    roff.control("fi", []);
}
