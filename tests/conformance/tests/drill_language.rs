//! The language of packetdrill, on the scripts that others wrote.

use segue_conformance::drill::files;
use segue_conformance::drill::parse::{asked_for, parse};

/// Scripts in the suites.
const SCRIPTS: usize = 115 + 60;

#[test]
fn every_script_of_the_suites_is_understood() {
    let folder = match files::judges() {
        Ok(folder) => folder,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let scripts = files::scripts(&folder).expect("the folder can be listed");
    assert_eq!(scripts.len(), SCRIPTS);
    for path in scripts {
        let source = files::read(&path).expect("the script can be read");
        let file = path.display().to_string();
        let mut platforms = asked_for(&source);
        platforms.push("none");
        for platform in platforms {
            let script = parse(&file, &source, &[platform]).unwrap_or_else(|error| panic!("{error}"));
            assert!(!script.events.is_empty());
        }
    }
}
