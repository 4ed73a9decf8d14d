//! What the machines of Mobile IPv6 count.

counters! {
    /// Counts of a mobile node, correspondent node or home agent. What a role never does stays zero.
    pub struct Counters {
        /// Signalling packets sent: mobility headers, in a tunnel or not.
        signalling_packets_sent,
        /// Their bytes, from the outermost IPv6 header on.
        signalling_bytes_sent,
        /// Binding Updates sent, retransmissions among them.
        binding_updates_sent,
        /// Binding Acknowledgements sent.
        binding_acknowledgements_sent,
        /// Home Test Inits and Care-of Test Inits sent, retransmissions among them.
        test_inits_sent,
        /// Home Tests and Care-of Tests sent.
        tests_sent,
        /// Binding Refresh Requests sent.
        refresh_requests_sent,
        /// Binding Errors sent.
        binding_errors_sent,
        /// Transmissions of a Binding Update or test for want of an answer.
        retransmissions,
        /// Binding Updates and tests that had to wait, as one of their kind had gone to the same node three times within a
        /// second.
        postponed,
        /// Probes sent of the way that packets take: echo requests.
        probes_sent,
        /// Probes answered.
        probes_answered,
        /// Addresses given up because nothing gets through their network.
        networks_silent,
        /// Handoffs begun.
        handoffs_begun,
        /// Handoffs that everybody acknowledged.
        handoffs_done,
        /// Bindings accepted, refreshes among them: by a home agent or correspondent.
        bindings_accepted,
        /// Bindings whose lifetime ended.
        bindings_expired,
        /// Packets sent through a tunnel, signalling not among them.
        tunnelled_out,
        /// Packets received through a tunnel.
        tunnelled_in,
        /// Packets sent with a Home Address option or type 2 routing header, signalling not among them.
        optimized_out,
        /// Packets received with one.
        optimized_in,
        /// Dropped: a mobility message whose authenticator is missing or wrong.
        unauthenticated,
        /// Dropped: a Binding Update with a sequence number out of window, or an acknowledgement of none outstanding.
        bad_sequence,
        /// Dropped: a Binding Update with a timestamp that is not close enough, or not newer than the last.
        bad_timestamp,
        /// Dropped: a Binding Update whose home or care-of nonce is no longer valid.
        expired_nonce,
        /// Dropped: a Home Test or Care-of Test with a cookie that is not outstanding.
        wrong_cookie,
        /// Dropped: a Home Test that did not come through the tunnel, away from home.
        outside_tunnel,
        /// Dropped: a message that nothing asked for, from somebody who is no peer.
        unexpected,
        /// Dropped: a mobility message that lacks an option, or has addresses that it must not have.
        malformed,
        /// Dropped: a mobility message of an unknown type.
        unknown_message,
        /// Dropped: a packet with a Home Address option and no binding to go with it.
        no_binding,
        /// Dropped: a type 2 routing header with an address that is not the home address.
        not_our_home_address,
        /// Dropped: a packet in a tunnel from somebody who has no business in it.
        tunnel_source_mismatch,
        /// Dropped: a Binding Update for a mobile node that this is not the home agent of.
        not_home_agent,
        /// Dropped: a Binding Update because the binding cache is full.
        cache_full,
        /// Dropped: a packet, for want of a care-of address.
        no_care_of_address,
        /// Dropped: a packet whose source address is on no interface.
        no_interface,
        /// Dropped: a packet too big for the tunnel; its source was told.
        too_big,
        /// Errors about packets in a tunnel that went on to the source of what was in it.
        tunnel_errors_relayed,
        /// Dropped: errors about packets in a tunnel that nobody here has sent, or that its source is not told of.
        tunnel_errors_dropped,
        /// Dropped: a packet that was in too many tunnels, or had been through too many routers.
        tunnel_limit,
        /// Not sent: errors, relayed or of its own, and refusals of Binding Updates, because there were too many lately (RFC 4443 section 2.4 f).
        errors_withheld,
        /// Dropped: a Binding Update that deletes a binding which does not exist.
        not_registered,
        /// Passed over: Binding Errors and Binding Refresh Requests that may well be forged.
        ignored,
    }
}
