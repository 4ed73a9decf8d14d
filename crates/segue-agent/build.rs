//! Compiles the programs of the fast path for the kernel's virtual machine, where there is a clang. Without one the agent has none, and
//! says so: it carries every packet itself.

use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/fast_path/packets.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("packets.bpf.o");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if linux && let Err(why) = compile(&out) {
        println!("cargo::warning=no fast path in the kernel: {why}");
        write_none(&out);
    }
}

/// An empty file says that there are no programs.
#[expect(clippy::disallowed_methods, reason = "a build has files to write")]
fn write_none(out: &Path) {
    std::fs::write(out, []).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

fn compile(out: &Path) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let target = match std::env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let done = Command::new(&clang)
        .args([
            "-target", target, "-mcpu=v2", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
        ])
        // where Debian has what belongs to a processor: of that, the types that all have
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .args(["-c", SOURCE, "-o"])
        .arg(out)
        .output()
        .map_err(|error| format!("{clang}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(said.lines().next().unwrap_or("clang failed").to_owned())
}
