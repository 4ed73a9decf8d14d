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
mod session;
#[cfg(target_os = "linux")]
mod setup;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("segue-sctp: works on Linux only");
    std::process::exit(2);
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    segue_live::command_line::main(
        "segue-sctp",
        |options: options::Options| match options.command {
            options::Command::Listen(listen) => exchange::listen(listen),
            options::Command::Connect(connect) => exchange::connect(connect),
            options::Command::Ping(ping) => ping::ping(ping),
        },
        |_| 2,
    )
}
