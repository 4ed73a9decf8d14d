/* stack.h on libusrsctp 0.9.5: SCTP in user space, over raw sockets or UDP. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

#define AUTHENTICATION(notification) ((notification)->sn_auth_event)
#include "notifications.h"

static struct socket *socket_of(stack_socket handle)
{
    return (struct socket *)handle;
}

static void set(struct socket *socket, int level, int name, const void *value, socklen_t length, const char *what)
{
    if (usrsctp_setsockopt(socket, level, name, value, length) < 0) {
        event("fatal call=%s error=%s", what, strerror(errno));
        exit(1);
    }
}

static void debug(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

/*
 * Says in which of usrsctp's threads it crashed, and dies of it. Packets are handled in those named "... rcv", so that
 * the name tells whether one of them was at work. Nothing here may take a lock or allocate.
 */
static void crashed(int number)
{
    static const char digits[] = "0123456789";
    char name[17] = "", line[64] = "0 crashed signal=";
    size_t length = strlen(line);
    prctl(PR_GET_NAME, name);
    line[length++] = digits[number / 10];
    line[length++] = digits[number % 10];
    memcpy(line + length, " thread=", 8);
    length += 8;
    memcpy(line + length, name, strlen(name));
    length += strlen(name);
    line[length++] = '\n';
    if (write(STDOUT_FILENO, line, length) < 0)
        _exit(1);
    raise(number);
}

static void say_crashes(void)
{
    struct sigaction action = {.sa_handler = crashed, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    for (const int *number = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, 0}; *number != 0; number++)
        sigaction(*number, &action, NULL);
}

void stack_start(void)
{
    say_crashes();
    usrsctp_init(options.udp_local, NULL, debug);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    /* No ABORT for packets that are not ours to answer. */
    usrsctp_sysctl_set_sctp_blackhole(2);
    usrsctp_sysctl_set_sctp_auth_enable(options.auth);
    usrsctp_sysctl_set_sctp_asconf_enable(options.asconf && options.auth);
    usrsctp_sysctl_set_sctp_auto_asconf(0);
    usrsctp_sysctl_set_sctp_rto_initial_default(options.rto_initial);
    usrsctp_sysctl_set_sctp_rto_min_default(options.rto_min);
    usrsctp_sysctl_set_sctp_rto_max_default(options.rto_max);
    usrsctp_sysctl_set_sctp_init_rto_max_default(options.rto_max);
    usrsctp_sysctl_set_sctp_path_rtx_max_default(options.path_max_retrans);
    usrsctp_sysctl_set_sctp_assoc_rtx_max_default(options.association_max_retrans);
    usrsctp_sysctl_set_sctp_heartbeat_interval_default(options.heartbeat_interval);
    usrsctp_sysctl_set_sctp_delayed_sack_time_default(options.sack_delay);
    usrsctp_sysctl_set_sctp_sendspace(options.send_buffer);
    usrsctp_sysctl_set_sctp_recvspace(options.receive_buffer);
}

static void set_authentication(struct socket *socket)
{
    if (options.hmac != 0) {
        union {
            struct sctp_hmacalgo algorithm;
            uint8_t room[sizeof(struct sctp_hmacalgo) + 2 * sizeof(uint16_t)];
        } value = {.algorithm = {.shmac_number_of_idents = 1}};
        value.algorithm.shmac_idents[0] = options.hmac;
        socklen_t length = sizeof(struct sctp_hmacalgo) + sizeof(uint16_t);
        /* SHA-1 has to be among them (RFC 4895 section 3.3); the first is the preferred one. */
        if (options.hmac != SCTP_AUTH_HMAC_ID_SHA1) {
            value.algorithm.shmac_number_of_idents = 2;
            value.algorithm.shmac_idents[1] = SCTP_AUTH_HMAC_ID_SHA1;
            length += sizeof(uint16_t);
        }
        set(socket, IPPROTO_SCTP, SCTP_HMAC_IDENT, &value, length, "SCTP_HMAC_IDENT");
    }
    if (options.key_bytes > 0) {
        union {
            struct sctp_authkey key;
            uint8_t room[sizeof(struct sctp_authkey) + MAX_KEY];
        } value = {.key = {.sca_keynumber = options.key_id, .sca_keylength = options.key_bytes}};
        struct sctp_authkeyid active = {.scact_keynumber = options.key_id};
        memcpy(value.key.sca_key, options.key, options.key_bytes);
        set(socket, IPPROTO_SCTP, SCTP_AUTH_KEY, &value, sizeof(struct sctp_authkey) + options.key_bytes,
            "SCTP_AUTH_KEY");
        set(socket, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &active, sizeof active, "SCTP_AUTH_ACTIVE_KEY");
    }
    for (int i = 0; i < options.auth_chunk_count; i++) {
        struct sctp_authchunk chunk = {.sauth_chunk = options.auth_chunks[i]};
        set(socket, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &chunk, sizeof chunk, "SCTP_AUTH_CHUNK");
    }
}

stack_socket stack_open(void)
{
    struct socket *socket = usrsctp_socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    int on = 1;
    if (socket == NULL)
        return -1;
    set(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    set(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    for (size_t i = 0; i < sizeof notification_types / sizeof *notification_types; i++) {
        struct sctp_event wanted = {
            .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = notification_types[i], .se_on = 1};
        set(socket, IPPROTO_SCTP, SCTP_EVENT, &wanted, sizeof wanted, "SCTP_EVENT");
    }
    if (options.udp_remote != 0) {
        struct sctp_udpencaps encapsulation = {.sue_port = htons(options.udp_remote)};
        encapsulation.sue_address.ss_family = AF_INET6;
        set(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation,
            "SCTP_REMOTE_UDP_ENCAPS_PORT");
    }
    if (options.auth)
        set_authentication(socket);
    if (usrsctp_bindx(socket, (struct sockaddr *)options.local, options.locals, SCTP_BINDX_ADD_ADDR) < 0)
        return -1;
    return (stack_socket)socket;
}

int stack_listen(stack_socket listener)
{
    return usrsctp_listen(socket_of(listener), 1);
}

stack_socket stack_accept(stack_socket listener)
{
    struct socket *accepted = usrsctp_accept(socket_of(listener), NULL, NULL);
    return accepted == NULL ? -1 : (stack_socket)accepted;
}

int stack_connect(stack_socket association)
{
    sctp_assoc_t id;
    return usrsctp_connectx(socket_of(association), (struct sockaddr *)options.remote, options.remotes, &id);
}

ssize_t stack_send(stack_socket association, const uint8_t *bytes, size_t length, uint16_t stream)
{
    struct sctp_sndinfo info = {.snd_sid = stream};
    return usrsctp_sendv(socket_of(association), bytes, length, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
}

struct message stack_receive(stack_socket association, uint8_t *buffer, size_t size)
{
    struct sctp_rcvinfo info = {0};
    struct sockaddr_in6 from;
    socklen_t from_length = sizeof from, info_length = sizeof info;
    unsigned type = SCTP_RECVV_NOINFO;
    int flags = 0;
    ssize_t length = usrsctp_recvv(socket_of(association), buffer, size, (struct sockaddr *)&from, &from_length, &info,
                                   &info_length, &type, &flags);
    if (length <= 0)
        return (struct message){.kind = RECEIVED_END};
    if (flags & MSG_NOTIFICATION) {
        report_notification(buffer);
        return (struct message){.kind = RECEIVED_NOTIFICATION};
    }
    return (struct message){.length = (size_t)length, .stream = info.rcv_sid, .end_of_record = flags & MSG_EOR};
}

int stack_add_address(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sockaddr_in6 copy = *address;
    return usrsctp_bindx(socket_of(association), (struct sockaddr *)&copy, 1, SCTP_BINDX_ADD_ADDR);
}

int stack_delete_address(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sockaddr_in6 copy = *address;
    return usrsctp_bindx(socket_of(association), (struct sockaddr *)&copy, 1, SCTP_BINDX_REM_ADDR);
}

int stack_set_primary(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sctp_setprim value = {0};
    memcpy(&value.ssp_addr, address, sizeof *address);
    return usrsctp_setsockopt(socket_of(association), IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &value, sizeof value);
}

int stack_set_peer_primary(stack_socket association, const struct sockaddr_in6 *address)
{
    struct sctp_setpeerprim value = {0};
    memcpy(&value.sspp_addr, address, sizeof *address);
    return usrsctp_setsockopt(socket_of(association), IPPROTO_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &value, sizeof value);
}

int stack_shutdown(stack_socket association)
{
    return usrsctp_shutdown(socket_of(association), SHUT_WR);
}

int stack_abort(stack_socket association)
{
    struct sctp_sndinfo info = {.snd_flags = SCTP_ABORT};
    uint8_t none = 0;
    return usrsctp_sendv(socket_of(association), &none, 0, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0 ? -1
                                                                                                                   : 0;
}

void stack_close(stack_socket association)
{
    usrsctp_close(socket_of(association));
}
