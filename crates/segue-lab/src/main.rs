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
    segue_live::command_line::main(
        "segue-lab",
        |options: options::Options| match options.command {
            options::Command::Link(link) => link::run(&link),
            options::Command::Tcp(end) => tcp::run(&end),
            options::Command::Goodput(goodput) => tcp::goodput(&goodput),
            options::Command::Ilnp(ilnp) => ilnp::run(&ilnp),
        },
        |_| 2,
    )
}
