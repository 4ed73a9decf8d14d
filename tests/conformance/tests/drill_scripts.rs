//! Scripts of our own, for what the suites of others have not.

use segue_conformance::drill::files;
use segue_conformance::drill::play::{Settings, play};
use segue_conformance::drill::verdict::{Report, Verdict};
use std::path::Path;

#[test]
fn all_of_them_pass_and_say_which_section_they_are_about() {
    let scripts = files::scripts(&files::own_scripts()).expect("tests/conformance/scripts");
    assert!(scripts.len() >= 16, "{} scripts", scripts.len());
    for path in scripts {
        let file = path.display().to_string();
        let source = files::read(&path).expect("a script");
        let first = source.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("// RFC ") && first.contains("section"),
            "{file}: {first}"
        );
        let played = play(&file, &source, &Settings::default()).unwrap_or_else(|error| panic!("{error}"));
        let report = Report {
            file: &file,
            verdict: &played.verdict,
        };
        assert_eq!(played.verdict, Verdict::Passed, "{report}");
    }
}

#[test]
fn the_example_of_the_documentation_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drill.md");
    let document = files::read(&path).expect("docs/drill.md");
    let blocks: Vec<_> = document.split("```").skip(1).step_by(2).collect();
    let example = blocks.iter().find(|block| block.contains("--remote_ip"));
    let example = example.expect("an example with --remote_ip");
    let played =
        play("docs/drill.md", example, &Settings::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(played.verdict, Verdict::Passed);
}
