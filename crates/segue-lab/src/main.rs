//! `segue-lab`: what the tests with a real kernel are made of.
//!
//! Exit status: 0 done, 1 it failed, 2 wrong input or not permitted.
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod ilnp;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod tcp;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("segue-lab: works on Linux only");
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
            return ExitCode::from(fail(&first_line(&error.to_string())));
        }
    };
    let outcome = match options.command {
        options::Command::Link(link) => link::run(&link),
        options::Command::Tcp(end) => tcp::run(&end),
        options::Command::Goodput(goodput) => tcp::goodput(&goodput),
        options::Command::Ilnp(ilnp) => ilnp::run(&ilnp),
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
            ExitCode::from(fail(&format!("{error:#}")))
        }
    }
}

/// One line for what is wrong.
#[cfg(target_os = "linux")]
fn fail(message: &str) -> u8 {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("segue-lab: {line}");
    2
}

/// What clap has to say in one line: the error itself, and what was missing if it is a list.
#[cfg(target_os = "linux")]
fn first_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\n").unwrap_or(message.len());
    format!("{} (see --help)", message[..end].trim())
}
