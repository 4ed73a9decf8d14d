//! Structures of counts.

/// Defines a structure of counts, each with what it counts, and [`Count`](crate::shim::Count)s of it by name.
macro_rules! counters {
    ($(#[$about:meta])* $visibility:vis struct $structure:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        $visibility struct $structure {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl $structure {
            /// The counts by name.
            #[must_use]
            pub fn list(&self) -> Vec<$crate::shim::Count> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}
