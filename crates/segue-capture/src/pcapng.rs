//! pcapng files.
