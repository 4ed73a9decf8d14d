//! Deterministic simulator: scheduler, links, radio cells, mobility, scenarios.
