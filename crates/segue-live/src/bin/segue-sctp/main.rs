//! `segue-sctp`: small tools that speak SCTP, so that interoperation is something a person can try.
//!
//! Exit status: 0 done, 1 the association failed, or something that was to be done with it, 2 wrong input, 130 Ctrl-C.
#![cfg_attr(not(target_os = "linux"), allow(unused))]

mod address;
#[cfg(target_os = "linux")]
mod calling;
#[cfg(target_os = "linux")]
mod exchange;
#[cfg(target_os = "linux")]
mod keys;
mod options;
#[cfg(target_os = "linux")]
mod ping;
#[cfg(target_os = "linux")]
mod receiver;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod sender;
#[cfg(target_os = "linux")]
mod setup;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("segue-sctp: works on Linux only");
    std::process::exit(2);
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use clap::Parser as _;
    use std::process::ExitCode;

    let options = match options::Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            use clap::error::ErrorKind;
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            // nothing was asked for: what could be is more help than a line
            if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                let _ = error.print();
                return ExitCode::from(2);
            }
            return ExitCode::from(fail(&first_line(&error.to_string())));
        }
    };
    let outcome = match options.command {
        options::Command::Listen(listen) => exchange::listen(listen),
        options::Command::Connect(connect) => exchange::connect(connect),
        options::Command::Ping(ping) => ping::ping(ping),
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let broken_pipe = error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe);
            // whoever read the output has had enough
            if broken_pipe {
                return ExitCode::SUCCESS;
            }
            let status = fail(&format!("{error:#}"));
            ExitCode::from(if error.is::<receiver::Mismatch>() {
                1
            } else {
                status
            })
        }
    }
}

/// One line for what the user did wrong.
#[cfg(target_os = "linux")]
fn fail(message: &str) -> u8 {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("segue-sctp: {line}");
    2
}

/// What clap has to say in one line: the error itself, and what was missing if it is a list.
#[cfg(target_os = "linux")]
fn first_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\n").unwrap_or(message.len());
    format!("{} (see --help)", message[..end].trim())
}
