//! What nodes that take time must be.

use super::first_cell;
use super::model::{MobileSection, ScenarioFile};
use super::validate::{Problem, problem};

pub(super) fn check(s: &ScenarioFile) -> Result<(), Problem> {
    let home = |m: &MobileSection| match &m.home {
        Some(home) => s.cell.iter().find(|c| c.name == *home),
        None => first_cell(s, m).map(|cell| &s.cell[cell]),
    };
    for (i, router) in s.router.iter().enumerate() {
        let is_home = || {
            let mut homes = s.mobile.iter().filter_map(home);
            homes.any(|cell| cell.router == router.name)
        };
        if router.processing.is_some() && !is_home() {
            return problem(
                format!("router[{i}].processing"),
                format!(
                    "`{}` is nobody's home agent, and takes no time: expected the router of a cell that is some [[mobile]]'s `home`",
                    router.name
                ),
            );
        }
    }
    Ok(())
}
