//! The program `segue-location`: where it listens, and how it ends.

mod common;

use common::{Killed, write};
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_segue-location");

/// The configuration of a server, in a folder of the test's own, and the key of `mh.loc.example`.
fn configured(test: &str, listen: &str) -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a directory");
    let (config, key) = (folder.join("location.toml"), folder.join("mh.key"));
    write(
        &key,
        "key mh { algorithm hmac-sha256; secret \"QUFBQUFBQUFBQUFBQUFBQUFBQUE=\"; };\n",
    );
    write(
        &config,
        &format!(
            "listen = [{listen}]\ndirectory = \"state\"\n[[zone]]\nname = \"loc.example\"\n\
             [[key]]\nfile = \"mh.key\"\nnames = [\"mh.loc.example\"]\n"
        ),
    );
    (config, key)
}

/// A port that neither IPv4 nor IPv6 has in use.
#[expect(clippy::disallowed_methods, reason = "looking for a port")]
fn free_port() -> u16 {
    let socket = UdpSocket::bind("[::]:0").expect("a socket");
    socket.local_addr().expect("its address").port()
}

fn serve(config: &Path, stdout: Stdio) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config"]).arg(config).stdout(stdout);
    command.spawn().expect("it starts")
}

/// Asks a server for a name that it does not have.
fn look_up(server: &str, stdout: Stdio) -> Output {
    Command::new(PROGRAM)
        .args([
            "lookup",
            "--json",
            "--attempts",
            "8",
            "--retry",
            "100 ms",
            "--server",
            server,
        ])
        .arg("mh.loc.example")
        .stdout(stdout)
        .output()
        .expect("it runs")
}

fn answers(server: &str) -> bool {
    String::from_utf8_lossy(&look_up(server, Stdio::piped()).stderr).contains("no such name")
}

/// An output that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn ipv4_and_ipv6_are_served_at_the_same_port() {
    for order in [["0.0.0.0", "[::]"], ["[::]", "0.0.0.0"]] {
        let port = free_port();
        let [one, other] = order.map(|address| format!("\"{address}:{port}\""));
        let (config, _) = configured("both", &format!("{one}, {other}"));
        let _server = Killed(serve(&config, Stdio::null()));
        assert!(answers(&format!("127.0.0.1:{port}")), "{order:?}");
        assert!(answers(&format!("[::1]:{port}")), "{order:?}");
    }
    // alone it is for both, as ever
    let port = free_port();
    let (config, _) = configured("one", &format!("\"[::]:{port}\""));
    let _server = Killed(serve(&config, Stdio::null()));
    assert!(answers(&format!("127.0.0.1:{port}")) && answers(&format!("[::1]:{port}")));
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    let port = free_port();
    let (config, _) = configured("unread", &format!("\"[::1]:{port}\""));
    let _server = Killed(serve(&config, unread()));
    let server = format!("[::1]:{port}");
    assert!(answers(&server));
    let asked = look_up(&server, unread());
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_disk_that_fills_up_while_it_serves_is_no_wrong_input() {
    let (config, key) = configured("full", "\"[::1]:0\"");
    let server = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; exec \"$@\"",
            "sh",
            PROGRAM,
            "serve",
            "--config",
        ])
        .arg(&config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut server = Killed(server.expect("it starts"));
    let mut line = String::new();
    let mut output = BufReader::new(server.0.stdout.take().expect("its output"));
    output.read_line(&mut line).expect("a line");
    let address = line.trim().trim_start_matches("listening on ");
    // no file of its may be written to behind the first byte
    let process = server.0.id().to_string();
    let limited = Command::new("prlimit")
        .args(["--fsize=1", "--pid", &process])
        .status();
    if !limited.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: the command prlimit is missing");
        return;
    }
    let updated = Command::new(PROGRAM)
        .args(["update", "--server", address, "--zone", "loc.example", "--key"])
        .arg(&key)
        .args(["--attempts", "1", "mh.loc.example", "2001:db8::1"])
        .output()
        .expect("it runs");
    assert_eq!(updated.status.code(), Some(1), "it was not acknowledged");
    for _ in 0..100 {
        if server.0.try_wait().expect("a child").is_some() {
            break;
        }
        pause();
    }
    let status = server.0.try_wait().expect("a child").expect("it has ended");
    let mut said = String::new();
    let errors = server.0.stderr.take().expect("its errors");
    BufReader::new(errors).read_line(&mut said).expect("a line");
    assert!(said.contains("cannot be written"), "{said}");
    assert_eq!(status.code(), Some(1), "{said}");
}

fn pause() {
    #[expect(clippy::disallowed_methods, reason = "a program takes a moment to end")]
    std::thread::sleep(Duration::from_millis(50));
}
