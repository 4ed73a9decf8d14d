//! Questions, look-ups and updates, and what became of them.

use super::upstream::UpstreamCounters;
use segue_proto::location::ClientCounters;
use segue_proto::shim::Count;

/// Questions and what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counters {
    /// Questions of applications.
    pub queries: u64,
    /// Answered with the identity of a node.
    pub identities: u64,
    /// Answered with what a server has said.
    pub passed: u64,
    /// Not answered, or with SERVFAIL: no server has said anything in time.
    pub failed: u64,
    /// Dropped: questions from another host than this.
    pub not_from_here: u64,
    /// Dropped: what is no question.
    pub malformed: u64,
    /// Questions beyond those that may be under way.
    pub too_many: u64,
    /// Questions that were asked again while they were under way.
    pub repeated: u64,
    /// Records of ILNP that were not understood, or are no single node's or place's.
    pub bad_records: u64,
    /// Names with an identifier that belongs to another name.
    pub taken: u64,
    /// Names of which no server said whether they are a node's.
    pub undecided: u64,
    /// Look-ups of where a peer is.
    pub look_ups: u64,
    /// Look-ups that found nothing.
    pub look_ups_in_vain: u64,
}

impl Counters {
    /// By name, with those of questions to servers and of updates: taken, refused, and what their client has counted.
    pub fn list(
        &self,
        upstream: &UpstreamCounters,
        (updates, refused, client): &(u64, u64, ClientCounters),
    ) -> Vec<Count> {
        vec![
            ("queries", self.queries),
            ("answered_with_identity", self.identities),
            ("answered_as_passed_on", self.passed),
            ("not_answered", self.failed),
            ("query_not_from_here", self.not_from_here),
            ("query_malformed", self.malformed),
            ("query_too_many", self.too_many),
            ("query_repeated", self.repeated),
            ("record_malformed", self.bad_records),
            ("nid_of_another_name", self.taken),
            ("node_undecided", self.undecided),
            ("look_ups", self.look_ups),
            ("look_ups_in_vain", self.look_ups_in_vain),
            ("upstream_sent", upstream.sent),
            ("upstream_sent_over_tcp", upstream.sent_over_tcp),
            ("upstream_answers", upstream.answers),
            ("upstream_unanswered", upstream.unanswered),
            ("upstream_late", upstream.late),
            ("upstream_wrong_source", upstream.wrong_source),
            ("upstream_wrong_answer", upstream.wrong_answer),
            ("upstream_other_letters", upstream.other_letters),
            // Updates of this host's records that a server has taken.
            ("updates", *updates),
            // Updates that a server has refused, or that nobody answered.
            ("updates_refused", *refused),
            ("updates_superseded", client.superseded),
            ("update_answer_unexpected", client.unexpected + client.malformed),
            ("update_answer_not_authentic", client.not_authentic),
        ]
    }
}
