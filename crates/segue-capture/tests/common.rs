//! What tshark makes of packets that we write.

use segue_capture::pcapng::{Direction, PcapngWriter};
use segue_wire::Packet;
use std::process::Command;

/// tshark's dissection of each of the packets, with a preference of its (`-o`); nothing, and it is said, where it is not
/// installed.
pub fn dissections(
    name: &str,
    packets: impl Iterator<Item = Packet>,
    preference: &str,
) -> Option<Vec<String>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed (Debian package tshark)");
        return None;
    }
    let mut writer = PcapngWriter::new(Vec::new(), name).unwrap();
    let interface = writer.interface("mn.wlan0", "").unwrap();
    for (time, packet) in (0..).zip(packets) {
        writer
            .packet(interface, time, Direction::Outbound, &packet)
            .unwrap();
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    #[expect(clippy::disallowed_methods, reason = "tshark reads a file")]
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    let output = Command::new("tshark")
        .args(["-o", preference, "-V", "-r"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = format!("\n{}", String::from_utf8_lossy(&output.stdout));
    Some(text.split("\nFrame ").skip(1).map(str::to_owned).collect())
}

/// tshark complains of nothing in a dissection, by none of these words either.
pub fn assert_clean(frame: &str, words: &[&str]) {
    for complaint in ["Malformed", "malformed", "[Expert Info (Error"]
        .iter()
        .chain(words)
    {
        assert!(!frame.contains(complaint), "{complaint} in\n{frame}");
    }
}
