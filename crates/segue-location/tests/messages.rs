//! What the command says of what cannot be.

use std::process::Command;

#[test]
fn no_message_has_the_numbers_of_the_system() {
    let missing = concat!(env!("CARGO_TARGET_TMPDIR"), "/nothing/location.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_segue-location"))
        .args(["serve", "--config", missing])
        .output()
        .expect("the command runs");
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(
        message,
        format!("segue location: {missing}: cannot be read: No such file or directory\n")
    );
}
