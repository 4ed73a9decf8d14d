//! Everything that is counted.

counters! {
    /// Everything counted. What is dropped is dropped without a trace but this: nothing that a peer, or somebody who
    /// pretends to be one, sends has another effect.
    pub struct Counters {
        /// Packets sent as ILNPv6.
        ilnp_sent,
        /// Packets received as ILNPv6.
        ilnp_received,
        /// Packets of identities sent as plain IPv6, to peers that speak only that.
        plain_sent,
        /// Packets received as plain IPv6 for identities.
        plain_received,
        /// Locator updates sent, retransmissions included.
        lu_sent,
        /// Locator updates sent again for want of an answer.
        lu_retransmitted,
        /// Locator updates received and acted upon.
        lu_received,
        /// Locator updates received that said what was known already.
        lu_repeated,
        /// Locators of peers that are not kept because they named too many.
        locators_left_out,
        /// Acknowledgements sent.
        lu_ack_sent,
        /// Acknowledgements received of the update under way.
        lu_ack_received,
        /// Locator updates given up.
        lu_given_up,
        /// Packets of signalling sent: locator updates and acknowledgements.
        signalling_packets_sent,
        /// Bytes of signalling sent, IPv6 headers included.
        signalling_bytes_sent,
        /// Handoffs begun.
        handoffs,
        /// Own locators that became stale because their router was silent.
        locators_stale,
        /// Probes of the way to a peer sent: locator updates that say what the last one did.
        probes_sent,
        /// Probes answered.
        probes_answered,
        /// Own locators given up because nothing gets through their network.
        locators_silent,
        /// Look-ups asked for.
        look_ups,
        /// Peers that turned out to speak only IPv6.
        fallbacks,
        /// Sessions of peers that have been started again: they answered a call that was repeated in vain with another nonce.
        called_anew,
        /// Sessions forgotten because the cache was full, because too many peers call with one identifier, or because too many
        /// called and did not carry on.
        forgotten,
        /// Dropped: for a locator of ours that a hard handoff gave up.
        stale_locator,
        /// Dropped: with another nonce than the session's.
        wrong_nonce,
        /// Dropped: an answer to a call of ours, from another locator than it went to, while the peer's nonce is not known.
        wrong_locator,
        /// Dropped: without a nonce between the identities of a session.
        missing_nonce,
        /// Dropped: with a nonce, for the identity of this host, which is never on the wire.
        identity_on_wire,
        /// Dropped: a packet with a nonce from an address that no peer can have: no locator, no identifier, or one of ours; or
        /// an identity.
        bad_source,
        /// Dropped: a first packet from a peer that is known already under another identifier of ours.
        second_session,
        /// Dropped: with more than one nonce.
        several_nonces,
        /// Dropped: with a nonce from a peer with which plain IPv6 is spoken.
        unexpected_nonce,
        /// Dropped: locator updates of nobody known here.
        lu_unknown_correspondent,
        /// Dropped: locator updates without a nonce.
        lu_missing_nonce,
        /// Dropped: locator updates with another nonce than the session's.
        lu_wrong_nonce,
        /// Dropped: locator updates that repeat one superseded just before.
        lu_replayed,
        /// Dropped: locator updates with a locator to which nothing can be routed, with the identity prefix, or with none that
        /// is valid.
        lu_bad_locator,
        /// Dropped: acknowledgements of something else than the update under way.
        lu_unexpected_ack,
        /// Dropped: ICMPv6 errors that quote neither nonce nor locators of a session, or were sent before a fallback.
        icmp_not_ours,
        /// Dropped: parameter problems from a peer that has shown that it speaks ILNPv6.
        fallback_refused,
        /// Not sent: this host has no locator.
        no_local_locator,
        /// Not sent: the peer's locators are not known, and as many packets wait as may.
        no_remote_locator,
        /// Not sent: as much went already to locators that nothing but updates has named as may (`unconfirmed_bytes`).
        unconfirmed_locator,
        /// Not sent: an answer to a peer whose session had to make room for others.
        no_session,
        /// Not sent: the directory does not know the peer, or has not said in time.
        not_found,
        /// Not sent: the peer is known by another identity.
        second_identity,
        /// Not sent: no ephemeral identifier has an address yet.
        no_identifier,
        /// What a look-up gave that is no locator of the peer.
        bad_look_up,
    }
}
