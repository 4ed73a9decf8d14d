/* stack.h on the SCTP of the Linux kernel, by its system calls alone: no libsctp. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Leans on the headers above. */
#include <linux/sctp.h>

#define AUTHENTICATION(notification) ((notification)->sn_authkey_event)
#include "notifications.h"

static void set(int socket, int name, const void *value, socklen_t length, const char *what)
{
    if (setsockopt(socket, IPPROTO_SCTP, name, value, length) < 0) {
        event("fatal call=%s error=%s", what, strerror(errno));
        exit(1);
    }
}

static void sysctl(const char *name, uint32_t value)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/net/sctp/%s", name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%u\n", value) < 0 || fclose(file) != 0) {
        event("fatal call=%s error=%s", path, strerror(errno));
        exit(1);
    }
}

void stack_start(void)
{
    sysctl("auth_enable", options.auth);
    sysctl("addip_enable", options.asconf && options.auth);
    sysctl("udp_port", options.udp_local);
    sysctl("encap_port", options.udp_remote);
    /* The order in which the bounds are checked: the old minimum and maximum are in force until both are set. */
    sysctl("rto_max", 60000);
    sysctl("rto_min", options.rto_min);
    sysctl("rto_max", options.rto_max);
    sysctl("rto_initial", options.rto_initial);
    sysctl("path_max_retrans", options.path_max_retrans);
    sysctl("association_max_retrans", options.association_max_retrans);
    sysctl("hb_interval", options.heartbeat_interval);
    sysctl("sack_timeout", options.sack_delay < 200 ? 200 : options.sack_delay);
}

static void set_authentication(int socket)
{
    if (options.hmac != 0) {
        union {
            struct sctp_hmacalgo algorithm;
            uint8_t room[sizeof(struct sctp_hmacalgo) + 2 * sizeof(uint16_t)];
        } value = {.algorithm = {.shmac_num_idents = 1}};
        value.algorithm.shmac_idents[0] = options.hmac;
        socklen_t length = sizeof(struct sctp_hmacalgo) + sizeof(uint16_t);
        /* SHA-1 has to be among them (RFC 4895 section 3.3); the first is the preferred one. */
        if (options.hmac != SCTP_AUTH_HMAC_ID_SHA1) {
            value.algorithm.shmac_num_idents = 2;
            value.algorithm.shmac_idents[1] = SCTP_AUTH_HMAC_ID_SHA1;
            length += sizeof(uint16_t);
        }
        set(socket, SCTP_HMAC_IDENT, &value, length, "SCTP_HMAC_IDENT");
    }
    if (options.key_bytes > 0) {
        union {
            struct sctp_authkey key;
            uint8_t room[sizeof(struct sctp_authkey) + MAX_KEY];
        } value = {.key = {.sca_keynumber = options.key_id, .sca_keylength = options.key_bytes}};
        struct sctp_authkeyid active = {.scact_keynumber = options.key_id};
        memcpy(value.key.sca_key, options.key, options.key_bytes);
        set(socket, SCTP_AUTH_KEY, &value, sizeof(struct sctp_authkey) + options.key_bytes, "SCTP_AUTH_KEY");
        set(socket, SCTP_AUTH_ACTIVE_KEY, &active, sizeof active, "SCTP_AUTH_ACTIVE_KEY");
    }
    for (int i = 0; i < options.auth_chunk_count; i++) {
        struct sctp_authchunk chunk = {.sauth_chunk = options.auth_chunks[i]};
        set(socket, SCTP_AUTH_CHUNK, &chunk, sizeof chunk, "SCTP_AUTH_CHUNK");
    }
}

stack_socket stack_open(void)
{
    int socket_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
    int on = 1, send_buffer = (int)options.send_buffer, receive_buffer = (int)options.receive_buffer;
    if (socket_fd < 0)
        return -1;
    set(socket_fd, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    set(socket_fd, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer, sizeof send_buffer);
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer, sizeof receive_buffer);
    for (size_t i = 0; i < sizeof notification_types / sizeof *notification_types; i++) {
        struct sctp_event wanted = {
            .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = notification_types[i], .se_on = 1};
        set(socket_fd, SCTP_EVENT, &wanted, sizeof wanted, "SCTP_EVENT");
    }
    if (options.auth)
        set_authentication(socket_fd);
    if (setsockopt(socket_fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, options.local,
                   (socklen_t)(sizeof *options.local * (size_t)options.locals)) < 0)
        return -1;
    return socket_fd;
}

int stack_listen(stack_socket listener)
{
    return listen((int)listener, 1);
}

stack_socket stack_accept(stack_socket listener)
{
    return accept((int)listener, NULL, NULL);
}

int stack_connect(stack_socket association)
{
    return setsockopt((int)association, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, options.remote,
                      (socklen_t)(sizeof *options.remote * (size_t)options.remotes)) < 0
               ? -1
               : 0;
}

static ssize_t send_with(int socket, const uint8_t *bytes, size_t length, struct sctp_sndinfo information)
{
    union {
        struct cmsghdr header;
        uint8_t room[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof information), .cmsg_level = IPPROTO_SCTP, .cmsg_type = SCTP_SNDINFO}};
    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    memcpy(CMSG_DATA(&control.header), &information, sizeof information);
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t stack_send(stack_socket association, const uint8_t *bytes, size_t length, uint16_t stream)
{
    return send_with((int)association, bytes, length, (struct sctp_sndinfo){.snd_sid = stream});
}

struct message stack_receive(stack_socket association, uint8_t *buffer, size_t size)
{
    uint8_t control[256] __attribute__((aligned(8)));
    struct iovec vector = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg((int)association, &message, 0);
    struct message received = {.kind = RECEIVED_END};
    if (length <= 0)
        return received;
    if (message.msg_flags & MSG_NOTIFICATION) {
        report_notification(buffer);
        received.kind = RECEIVED_NOTIFICATION;
        return received;
    }
    received.kind = RECEIVED_DATA;
    received.length = (size_t)length;
    received.end_of_record = message.msg_flags & MSG_EOR;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header))
        if (header->cmsg_level == IPPROTO_SCTP && header->cmsg_type == SCTP_RCVINFO)
            received.stream = ((struct sctp_rcvinfo *)CMSG_DATA(header))->rcv_sid;
    return received;
}

int stack_add_address(stack_socket association, const struct sockaddr_in6 *address)
{
    return setsockopt((int)association, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, address, sizeof *address);
}

int stack_delete_address(stack_socket association, const struct sockaddr_in6 *address)
{
    return setsockopt((int)association, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_REM, address, sizeof *address);
}

int stack_set_primary(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sctp_prim value = {0};
    memcpy(&value.ssp_addr, address, sizeof *address);
    return setsockopt((int)association, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &value, sizeof value);
}

int stack_set_peer_primary(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sctp_setpeerprim value = {0};
    memcpy(&value.sspp_addr, address, sizeof *address);
    return setsockopt((int)association, IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &value, sizeof value);
}

int stack_shutdown(stack_socket association)
{
    return shutdown((int)association, SHUT_WR);
}

/* SCTP_ABORT is not for one-to-one sockets: one that is closed without lingering aborts, when nobody waits on it. */
int stack_abort(stack_socket association)
{
    struct linger none = {.l_onoff = 1};
    return setsockopt((int)association, SOL_SOCKET, SO_LINGER, &none, sizeof none) < 0 ? -1 : 1;
}

void stack_close(stack_socket association)
{
    close((int)association);
}
