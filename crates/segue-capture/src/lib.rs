//! pcapng in and out, flows, and handover metrics.
