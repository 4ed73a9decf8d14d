//! What the programs of the drivers share: arguments in, a status and one line out.

use std::io::Write as _;
use std::process::ExitCode;

/// Runs a program: its arguments are parsed, `run` does what they ask for and gives the exit status.
///
/// Wrong arguments and an error of `run` are one line on standard error, and status 2, or what `status` makes of the error.
/// A reader of the output who has had enough (a broken pipe) is no error.
pub fn main<Options: clap::Parser>(
    program: &str,
    run: impl FnOnce(Options) -> anyhow::Result<u8>,
    status: impl FnOnce(&anyhow::Error) -> u8,
) -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return refused(program, &error),
    };
    match run(options) {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(program, &format!("{error:#}"));
            ExitCode::from(status(&error))
        }
    }
}

/// Help goes out as it is, a mistake as one line.
fn refused(program: &str, error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        // nothing was asked for: what could be is more help than a line
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            say(program, &first_paragraph(&error.to_string()));
            ExitCode::from(2)
        }
    }
}

/// Whether it is that a reader of the output has had enough.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Says it in one line on standard error, whether or not somebody reads that.
pub fn say(program: &str, message: &str) {
    let _ = writeln!(std::io::stderr(), "{program}: {}", one_line(message));
}

/// The message in one line, without the numbers that the operating system has for its errors.
fn one_line(message: &str) -> String {
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(begin) = line.find(" (os error ") {
        let end = line[begin..].find(')').map_or(line.len(), |n| begin + n + 1);
        line.replace_range(begin..end, "");
    }
    line
}

/// What clap has to say: the error itself, and what was missing if it is a list.
fn first_paragraph(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\n").unwrap_or(message.len());
    format!("{} (see --help)", message[..end].trim())
}
