//! Sums of counters.

/// Adds the named fields of one value to those of another.
macro_rules! add_fields {
    ($to:expr, $from:expr, $($field:ident),* $(,)?) => {
        $($to.$field += $from.$field;)*
    };
}
pub(super) use add_fields;
