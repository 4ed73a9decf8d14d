//! Home registration (RFC 6275 sections 11.7.1, 11.7.3 and 11.8), and returning home (section 11.5.5).

use super::{Attachment, MobileNode};
use crate::contract::LocalAddress;
use crate::mip6::binding_update_list::{Due, PendingUpdate, Registered};
use crate::mip6::config::{LIFETIME_UNIT, ReplayProtection};
use crate::mip6::home_agent::timestamp;
use crate::mip6::return_routability::{mn_ha_code, verify_mn_ha_code};
use crate::mip6::{is_newer, lifetime_units, mobility_packet};
use crate::shim::ShimEvent;
use crate::time::Instant;
use segue_wire::ExtensionHeader;
use segue_wire::mobility::{
    AuthenticationSubtype, BindingAcknowledgement, BindingUpdate, MobilityHeader, MobilityMessage,
    MobilityOption, binding_status,
};

impl MobileNode {
    /// Tells the home agent where the node is now: the care-of address, or that it is at home.
    pub(super) fn begin_home_registration(&mut self, now: Instant) {
        let Some(care_of_address) = self.own_address() else {
            return;
        };
        let lifetime = if self.is_at_home() {
            0
        } else {
            lifetime_units(self.config.home_lifetime)
        };
        // the home agent makes sure of the home address before the first binding
        let first = self.home.registered().is_none() && lifetime > 0;
        let timeout = if first {
            self.config.initial_bindack_timeout_first_reg
        } else {
            self.config.initial_bindack_timeout
        };
        self.home.begin(now, care_of_address, lifetime, timeout);
        self.send_home_update(now);
    }

    /// Section 11.5.5: at home the node has its home address on the interface that is there, whichever that is. The home agent
    /// defends it as long as there may be a binding, so that the node detects no duplicates then; otherwise it should.
    pub(super) fn place_home_address(&mut self) {
        let places = self.movement.place_home_address();
        let bound = self.home.registered().is_some() || self.home.pending().is_some();
        let ask = if bound {
            ShimEvent::AssignAddress
        } else {
            ShimEvent::FormAddress
        };
        self.events
            .extend(places.no_longer.map(ShimEvent::WithdrawAddress));
        self.events.extend(places.from_now_on.map(ask));
    }

    /// Section 11.5.5: the home agent has let the home address go, and those on the home link are to know whose it is.
    fn announce_home_address(&mut self) {
        if let Attachment::Home(interface) = self.attachment {
            let address = self.config.home_address;
            let local = LocalAddress { interface, address };
            self.events.push_back(ShimEvent::AnnounceAddress(local));
        }
    }

    /// Retransmissions, refreshes and the end of the binding.
    pub(super) fn handle_home_timeout(&mut self, now: Instant) {
        let max = self.config.max_bindack_timeout;
        if let Some(again) = self.home.take_retransmission(now, max) {
            self.counters.retransmissions += u64::from(again.retransmits);
            if again.report {
                self.home_registration_failed();
            }
            self.send_home_update(now);
        }
        let registered = self.home.registered().map(Registered::care_of_address);
        match self.home.take_due(now) {
            Due::Nothing => {}
            Due::Expired => {
                self.counters.bindings_expired += 1;
                // the acknowledgement came when the binding was over, or the last one said no
                if self.home.pending().is_none() && self.own_address() == registered {
                    self.begin_home_registration(now);
                }
            }
            Due::Refresh => {
                if self.home.pending().is_none() && self.own_address() == registered {
                    self.begin_home_registration(now);
                }
            }
        }
    }

    /// No answer comes, or none that helps.
    fn home_registration_failed(&mut self) {
        let peer = self.config.home_agent;
        self.events.push_back(ShimEvent::HandoffFailed { peer });
    }

    /// A Binding Acknowledgement from the home agent (section 11.7.3).
    pub(super) fn handle_home_acknowledgement(
        &mut self,
        now: Instant,
        header: &MobilityHeader,
        acknowledgement: BindingAcknowledgement,
    ) {
        let Some(pending) = self.home.pending().copied() else {
            self.counters.unexpected += 1;
            return;
        };
        let last = self.home.sequence();
        let out_of_window = acknowledgement.status == binding_status::SEQUENCE_OUT_OF_WINDOW;
        let answers = if out_of_window {
            // its last one is not before ours
            !is_newer(last, acknowledgement.sequence)
        } else {
            pending.answers(acknowledgement.sequence, last)
        };
        if !answers {
            self.counters.bad_sequence += 1;
            return;
        }
        if !self.is_authentic(header, &pending) {
            self.counters.unauthenticated += 1;
            return;
        }
        match acknowledgement.status {
            binding_status::SEQUENCE_OUT_OF_WINDOW => {
                self.home.adopt_sequence(acknowledgement.sequence);
                self.register_again(now);
            }
            binding_status::ID_MISMATCH | binding_status::MESSAGE_ID_REQUIRED => {
                if let Some(theirs) = timestamp(header) {
                    self.clock.adopt(now, theirs);
                }
                self.replay_protection = ReplayProtection::Timestamp;
                self.register_again(now);
            }
            // what is to be deleted is not there (section 10.3.2)
            binding_status::NOT_HOME_AGENT if pending.lifetime() == 0 => {
                self.home_registration_done(now, header, &pending, acknowledgement.sequence, 0);
            }
            status if may_pass(status) => self.register_later(now),
            // nothing that this node could do about it would help (section 11.7.3), but a move may
            status if status >= binding_status::UNSPECIFIED => {
                self.home.stop();
                self.handoff = None;
                self.home_registration_failed();
            }
            _ => {
                let BindingAcknowledgement {
                    sequence, lifetime, ..
                } = acknowledgement;
                self.home_registration_done(now, header, &pending, sequence, lifetime);
            }
        }
    }

    fn home_registration_done(
        &mut self,
        now: Instant,
        header: &MobilityHeader,
        pending: &PendingUpdate,
        sequence: u16,
        granted: u16,
    ) {
        let granted = granted.min(pending.lifetime());
        let sent = pending.sent_at(sequence, self.home.sequence());
        let registered = (granted > 0).then(|| {
            let lifetime = LIFETIME_UNIT * u64::from(granted);
            let advice = header.options.iter().find_map(|option| match option {
                // more than the lifetime is to be ignored (section 6.2.4)
                MobilityOption::BindingRefreshAdvice(units) if *units < granted => {
                    Some(LIFETIME_UNIT * u64::from(*units))
                }
                _ => None,
            });
            Registered::new(now, pending, sent, lifetime, advice.unwrap_or(lifetime * 3 / 4))
        });
        self.home.on_acknowledged(registered);
        if pending.lifetime() == 0 {
            self.announce_home_address();
        }
        if self.handoff.is_some() {
            // those who are being told already go on
            self.tell_correspondents(now);
        }
        self.check_handoff(now);
    }

    /// A Binding Update was refused, with what the next one needs: that goes out at once the first time, and then at the
    /// pace of retransmissions (section 11.8), or a home agent that goes on refusing would be asked every round trip.
    fn register_again(&mut self, now: Instant) {
        if self.home.on_refused() {
            self.begin_home_registration(now);
        }
    }

    /// A Binding Update was refused for a reason that may pass: it goes out again at the slowest pace of retransmissions
    /// (sections 11.7.3 and 11.8), for as long as the node is where it is.
    fn register_later(&mut self, now: Instant) {
        let max = self.config.max_bindack_timeout;
        if self.home.on_refused_for_now(now, max) {
            self.home_registration_failed();
        }
    }

    /// RFC 4285 section 5.1.
    fn is_authentic(&self, header: &MobilityHeader, pending: &PendingUpdate) -> bool {
        let security = &self.config.security;
        header
            .message_authentication()
            .zip(header.authenticated_bytes())
            .is_some_and(|(option, mh_data)| {
                option.spi == security.spi
                    && option.subtype == AuthenticationSubtype::MnHa
                    && verify_mn_ha_code(
                        security.key.as_bytes(),
                        pending.care_of_address(),
                        self.config.home_address,
                        &mh_data,
                        &option.data,
                    )
            })
    }

    /// Sends the Binding Update that is pending, with the sequence number as it is; later, if there were too many within a
    /// second.
    fn send_home_update(&mut self, now: Instant) {
        let Ok(pending) = self.home.send(now) else {
            self.counters.postponed += 1;
            return;
        };
        let Some(pending) = pending else { return };
        let home_address = self.config.home_address;
        let care_of_address = pending.care_of_address();
        let security = &self.config.security;
        let update = BindingUpdate {
            sequence: self.home.sequence(),
            acknowledge: true,
            home_registration: true,
            lifetime: pending.lifetime(),
            ..BindingUpdate::default()
        };
        let mut options = Vec::new();
        if self.replay_protection == ReplayProtection::Timestamp {
            let timestamp = self.clock.at(now);
            options.push(MobilityOption::ReplayProtection(timestamp));
        }
        options.push(MobilityOption::blank_authentication(security.spi));
        let mut header = MobilityHeader::new(MobilityMessage::BindingUpdate(update), options);
        if let Some(mh_data) = header.authenticated_bytes() {
            let code = mn_ha_code(security.key.as_bytes(), care_of_address, home_address, &mh_data);
            header.authenticate(code);
        }
        let mut packet = mobility_packet(care_of_address, self.config.home_agent, header);
        if care_of_address != home_address {
            packet
                .extensions
                .push(ExtensionHeader::home_address(home_address));
        }
        if self.own_address() == Some(care_of_address) {
            self.send(packet);
        } else {
            self.counters.no_care_of_address += 1;
        }
    }
}

/// Whether a home agent that refuses with this status may accept the same later, without anything that the mobile node
/// could do about it: for want of room, because somebody else has the home address just now, or without a reason given.
fn may_pass(status: u8) -> bool {
    matches!(
        status,
        binding_status::UNSPECIFIED | binding_status::INSUFFICIENT_RESOURCES | binding_status::DAD_FAILED
    )
}
