/*
 * Reports a notification of RFC 6458 section 6.1. Included by each stack after its own header: names and fields are
 * the same in both, values and layouts are not.
 */
#ifndef NOTIFICATIONS_H
#define NOTIFICATIONS_H

#include "stack.h"

#include <arpa/inet.h>
#include <string.h>

static void report_association(const struct sctp_assoc_change *change)
{
    const char *name = "association-changed";
    switch (change->sac_state) {
    case SCTP_COMM_UP:
        name = "up";
        break;
    case SCTP_COMM_LOST:
        name = "lost";
        break;
    case SCTP_RESTART:
        name = "restarted";
        break;
    case SCTP_SHUTDOWN_COMP:
        name = "shut-down";
        break;
    case SCTP_CANT_STR_ASSOC:
        name = "not-started";
        break;
    }
    event("%s error=%u out=%u in=%u", name, change->sac_error, change->sac_outbound_streams,
          change->sac_inbound_streams);
}

static void report_peer_address(const struct sctp_paddr_change *change)
{
    const char *state = "unknown";
    char text[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_in6 address;
    /* The field is packed. */
    memcpy(&address, &change->spc_aaddr, sizeof address);
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
    switch (change->spc_state) {
    case SCTP_ADDR_AVAILABLE:
        state = "available";
        break;
    case SCTP_ADDR_UNREACHABLE:
        state = "unreachable";
        break;
    case SCTP_ADDR_REMOVED:
        state = "removed";
        break;
    case SCTP_ADDR_ADDED:
        state = "added";
        break;
    case SCTP_ADDR_MADE_PRIM:
        state = "made-primary";
        break;
    case SCTP_ADDR_CONFIRMED:
        state = "confirmed";
        break;
    }
    event("peer-address address=%s state=%s error=%u", text, state, (unsigned)change->spc_error);
}

static void report_notification(const void *bytes)
{
    const union sctp_notification *notification = (const union sctp_notification *)bytes;
    switch (notification->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE:
        report_association(&notification->sn_assoc_change);
        break;
    case SCTP_PEER_ADDR_CHANGE:
        report_peer_address(&notification->sn_paddr_change);
        break;
    case SCTP_REMOTE_ERROR:
        event("remote-error cause=%u", ntohs(notification->sn_remote_error.sre_error));
        break;
    case SCTP_SHUTDOWN_EVENT:
        event("peer-shutdown");
        break;
    case SCTP_SEND_FAILED_EVENT:
        event("send-failed");
        break;
    case SCTP_AUTHENTICATION_EVENT:
        event("authentication indication=%u", (unsigned)AUTHENTICATION(notification).auth_indication);
        break;
    default:
        event("notification type=%u", notification->sn_header.sn_type);
    }
}

static const uint16_t notification_types[] = {
    SCTP_ASSOC_CHANGE,   SCTP_PEER_ADDR_CHANGE,  SCTP_REMOTE_ERROR,
    SCTP_SHUTDOWN_EVENT, SCTP_SEND_FAILED_EVENT, SCTP_AUTHENTICATION_EVENT,
};

#endif
