//! `segue-agent`: ILNPv6 or Mobile IPv6 under the applications of this machine.
//!
//! Exit status: 0 done, 1 it failed, 2 wrong input or not permitted.
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod file;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod man;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod role;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod trace_file;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("segue-agent: works on Linux only");
    std::process::exit(2);
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use options::Command;
    segue_live::command_line::main(
        "segue-agent",
        |options: options::Options| match options.command {
            Command::Check(file) => file::check(&file.file),
            Command::Run(file) => run::run(&file.file),
            Command::Status(status) => control::show_status(&status.agent.socket, status.json),
            Command::Handover(handover) => control::ask_for(&handover.agent.socket, &handover.interface),
            Command::Trace(trace) => {
                let request = trace::TraceRequest {
                    seconds: trace.seconds,
                    packets: trace.packets,
                    snap: trace.snap,
                };
                trace_file::trace(&trace.agent.socket, &trace.file, request)
            }
            Command::Doctor => doctor::look(),
            Command::Man => man::show(),
        },
        |_| 2,
    )
}
