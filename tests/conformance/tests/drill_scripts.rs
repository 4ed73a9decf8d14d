//! Scripts of our own, for what the suites of others have not.

use segue_conformance::drill::files;
use segue_conformance::drill::play::{Settings, play};
use segue_conformance::drill::verdict::{Report, Verdict};

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
