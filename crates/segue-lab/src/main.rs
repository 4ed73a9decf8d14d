//! `segue-lab`: scenarios with real hosts, and what the tests with a real kernel are made of.
//!
//! Exit status: 0 done, 1 it failed, 2 wrong input or not permitted, 3 packets were too late, 130 interrupted.
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod app;
#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod ilnp;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod tcp;
#[cfg(target_os = "linux")]
mod text;

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
            options::Command::Run(scenario) => run::run(&scenario),
            options::Command::Compare(given) => Err(of_python("compare", &given.words)),
            options::Command::Reproduce(given) => Err(of_python("reproduce", &given.words)),
            options::Command::App(app) => app::run(&app),
        },
        |_| 2,
    )
}

#[cfg(target_os = "linux")]
fn of_python(command: &str, words: &[String]) -> anyhow::Error {
    anyhow::anyhow!(
        "{command}: is a part of the Python package: expected `segue lab {command} {}`",
        words.join(" ")
    )
}
