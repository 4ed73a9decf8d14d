//! What was counted: of an endpoint, and of an association. Nothing that is not acted on goes uncounted, and each
//! reason has a counter of its own, so that an attack, a broken peer and a misconfiguration can be told apart.

use super::add_fields::add_fields;
use super::multipath::MultipathCounters;

impl Counters {
    /// Adds those of another association.
    pub(super) fn add(&mut self, other: &Self) {
        add_fields!(
            self,
            other,
            data_chunks_sent,
            data_chunks_retransmitted,
            fast_retransmits,
            t3_expiries,
            data_chunks_received,
            duplicate_data_chunks,
            asconfs_sent,
            asconf_acks_sent,
            deactivations,
            activations,
            pmtu_probes,
            sacks_sent,
            sacks_received,
            addresses_ignored,
            messages_abandoned_unsent,
            messages_abandoned_sent,
            forward_tsns_sent,
            forward_tsns_received,
            rwnd_blocked_ns,
        );
        self.multipath.add(&other.multipath);
        self.refused.add(&other.refused);
    }
}

/// Counters of an endpoint: packets that reached no association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Associations looked at to find those that packets, ICMPv6 errors and calls are for: not many more than there were of these,
    /// however many associations there are.
    pub associations_examined: u64,
    /// Packets out of the blue (RFC 9260 section 8.4).
    pub out_of_the_blue: u64,
    /// INITs answered with a cookie; nothing was kept of them.
    pub inits_answered: u64,
    /// Peers that restarted (section 5.2.4, action A).
    pub restarts: u64,
    /// Addresses that an INIT named and that cannot be its sender's (section 5.1.2).
    pub addresses_ignored: u64,
    /// ICMPv6 errors about packets of this endpoint's.
    pub icmp: IcmpCounters,
    /// Packets refused, by reason.
    pub refused: EndpointRefused,
}

/// ICMPv6 errors (RFC 9260 section 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IcmpCounters {
    /// Something came of it.
    pub taken: u64,
    /// About a packet of ours, but of a kind that nothing comes of, or too soon after the last.
    pub ignored: u64,
    /// Too short a quote, or one that none of our associations can have sent (ICMP5, ICMP6).
    pub invalid: u64,
}

/// Packets that an endpoint refused, each counted under one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointRefused {
    /// For another port than the endpoint's.
    pub wrong_port: u64,
    /// Without a chunk, or with one beside it that must travel alone (RFC 9260 section 6.10).
    pub malformed: u64,
    /// From or to an address that is not one host's (section 8.4, rule 1).
    pub not_unicast: u64,
    /// INITs whose verification tag is not zero (section 8.5.1, rule A).
    pub bad_init_tag: u64,
    /// INITs with values that no INIT may have (section 3.3.2).
    pub bad_init: u64,
    /// COOKIE ECHOs whose cookie this endpoint never signed, or that was changed on the way (section 5.1.5, step 2).
    pub forged_cookies: u64,
    /// COOKIE ECHOs whose cookie has outlived its life (section 5.1.5, step 4).
    pub stale_cookies: u64,
    /// COOKIE ECHOs with a good cookie under a verification tag or between ports that are not the cookie's (step 3).
    pub mismatched_cookies: u64,
    /// COOKIE ECHOs that neither begin nor repeat an association (section 5.2.4).
    pub unexpected_cookies: u64,
    /// COOKIE ECHOs that must be authenticated and are not (RFC 4895 section 6.3).
    pub unauthenticated: u64,
    /// COOKIE ECHOs whose AUTH chunk does not verify (RFC 4895 section 6.3).
    pub bad_auth: u64,
    /// Packets with the tag of an association from an address that its peer has had, or may believe to have.
    pub foreign_address: u64,
    /// INITs that would have added addresses to an association that exists (section 5.2.2).
    pub new_addresses: u64,
    /// INITs and COOKIE ECHOs beyond `Config::max_associations`.
    pub too_many_associations: u64,
    /// Associations not begun for want of a local address.
    pub no_local_address: u64,
    /// INIT ACKs for an association that would have been the second with its peer (section 1.3).
    pub second_associations: u64,
}

impl EndpointRefused {
    /// Packets refused for whatever reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.wrong_port
            + self.malformed
            + self.not_unicast
            + self.bad_init_tag
            + self.bad_init
            + self.forged_cookies
            + self.stale_cookies
            + self.mismatched_cookies
            + self.unexpected_cookies
            + self.unauthenticated
            + self.bad_auth
            + self.foreign_address
            + self.new_addresses
            + self.too_many_associations
            + self.no_local_address
            + self.second_associations
    }
}

/// Counters of an association since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// DATA chunks sent, retransmissions included.
    pub data_chunks_sent: u64,
    /// DATA chunks retransmitted.
    pub data_chunks_retransmitted: u64,
    /// DATA chunks retransmitted by fast retransmit.
    pub fast_retransmits: u64,
    /// T3-rtx expiries.
    pub t3_expiries: u64,
    /// DATA chunks received that were new.
    pub data_chunks_received: u64,
    /// DATA chunks received more than once.
    pub duplicate_data_chunks: u64,
    /// ASCONFs sent, retransmissions included.
    pub asconfs_sent: u64,
    /// ASCONF-ACKs sent.
    pub asconf_acks_sent: u64,
    /// Times that the peer deactivated an address of its own.
    pub deactivations: u64,
    /// Times that the peer activated one again.
    pub activations: u64,
    /// Probes of the path MTU sent.
    pub pmtu_probes: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Addresses that the INIT ACK named and that cannot be the peer's (section 5.1.2).
    pub addresses_ignored: u64,
    /// Messages abandoned before any of them was sent (RFC 7496 section 4.3).
    pub messages_abandoned_unsent: u64,
    /// Messages abandoned of which some was sent.
    pub messages_abandoned_sent: u64,
    /// FORWARD TSNs sent.
    pub forward_tsns_sent: u64,
    /// FORWARD TSNs received.
    pub forward_tsns_received: u64,
    /// Time for which cwnd had room for data that waited, and the peer's receive window had none, nanoseconds.
    pub rwnd_blocked_ns: u64,
    /// Concurrent multipath transfer.
    pub multipath: MultipathCounters,
    /// Packets and chunks not acted on, by reason.
    pub refused: Refused,
}

/// What an association did not act on, each packet or chunk counted under one reason. Duplicate DATA is no refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// Packets with a wrong verification tag (RFC 9260 section 8.5).
    pub bad_tag: u64,
    /// Packets for an association that has ended.
    pub after_close: u64,
    /// Chunks that the state does not await (sections 5.2.3, 5.2.5, 6, 8.5.1).
    pub unexpected: u64,
    /// Chunks of a type that is not known (section 3.2).
    pub unknown: u64,
    /// SACKs and SHUTDOWNs that acknowledge what was never sent, or whose gap ack blocks cannot be (section 6.2.1).
    pub impossible_acks: u64,
    /// DATA beyond the receive window, or too far ahead to be reported (section 6.2).
    pub beyond_window: u64,
    /// DATA for streams that were not negotiated (section 6.5).
    pub bad_stream: u64,
    /// HEARTBEAT ACKs that answer no heartbeat of ours (section 8.3).
    pub bad_heartbeat_acks: u64,
    /// ASCONFs and ASCONF-ACKs whose serial number is neither expected nor the last (RFC 5061 sections 5.1 and 5.2).
    pub bad_asconf_serial: u64,
    /// Chunks that must be authenticated and are not (RFC 4895 section 6.3, RFC 5061 section 4.1).
    pub unauthenticated: u64,
    /// Packets whose AUTH chunk does not verify, or names a key or an HMAC that is not in use (RFC 4895 section 6.3).
    pub bad_auth: u64,
}

impl Refused {
    fn add(&mut self, other: &Self) {
        add_fields!(
            self,
            other,
            bad_tag,
            after_close,
            unexpected,
            unknown,
            impossible_acks,
            beyond_window,
            bad_stream,
            bad_heartbeat_acks,
            bad_asconf_serial,
            unauthenticated,
            bad_auth,
        );
    }

    /// Packets and chunks refused for whatever reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bad_tag
            + self.after_close
            + self.unexpected
            + self.unknown
            + self.impossible_acks
            + self.beyond_window
            + self.bad_stream
            + self.bad_heartbeat_acks
            + self.bad_asconf_serial
            + self.unauthenticated
            + self.bad_auth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_refuse_a_packet_is_in_the_total_once() {
        let refused = EndpointRefused {
            wrong_port: 1 << 0,
            malformed: 1 << 1,
            not_unicast: 1 << 2,
            bad_init_tag: 1 << 3,
            bad_init: 1 << 4,
            forged_cookies: 1 << 5,
            stale_cookies: 1 << 6,
            mismatched_cookies: 1 << 7,
            unexpected_cookies: 1 << 8,
            unauthenticated: 1 << 9,
            bad_auth: 1 << 10,
            foreign_address: 1 << 11,
            new_addresses: 1 << 12,
            too_many_associations: 1 << 13,
            no_local_address: 1 << 14,
            second_associations: 1 << 15,
        };
        assert_eq!(refused.total(), (1 << 16) - 1);
    }
}
