/*
 * usrsctp_bulk: one association of libusrsctp in UDP (RFC 6951) that carries messages as fast as they go, for
 * benches/sctp_throughput.py.
 *
 *   usrsctp_bulk send PEER_UDP_PORT OWN_UDP_PORT SCTP_PORT SIZE MTU BUFFER SECONDS
 *   usrsctp_bulk receive OWN_UDP_PORT SCTP_PORT MTU BUFFER
 *
 * Both ends are ::1. MTU is that of the IPv6 packet, UDP header included; BUFFER is that of sending and of receiving.
 * CRC32c is worked out and checked on the loopback interface too. The receiver prints, when the association has ended,
 * the bytes received and the seconds from the first message to the last.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { IPV6_HEADER = 40, UDP_HEADER = 8, SCTP_HEADER = 12, MAX_MESSAGE = 65536 };

static char buffer[MAX_MESSAGE];

static void fail(const char *what)
{
    fprintf(stderr, "usrsctp_bulk: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void debug(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set(struct socket *socket, int level, int name, const void *value, socklen_t length, const char *what)
{
    if (usrsctp_setsockopt(socket, level, name, value, length) < 0)
        fail(what);
}

static struct sockaddr_in6 loopback(uint16_t port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};
    return address;
}

static struct socket *open_socket(uint16_t port, uint16_t peer_udp_port, uint32_t mtu, int space)
{
    struct socket *socket = usrsctp_socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (socket == NULL)
        fail("usrsctp_socket");
    int on = 1;
    set(socket, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    set(socket, SOL_SOCKET, SO_SNDBUF, &space, sizeof space, "SO_SNDBUF");
    set(socket, SOL_SOCKET, SO_RCVBUF, &space, sizeof space, "SO_RCVBUF");
    if (peer_udp_port != 0) {
        struct sctp_udpencaps encapsulation = {.sue_port = htons(peer_udp_port)};
        encapsulation.sue_address.ss_family = AF_INET6;
        set(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation,
            "SCTP_REMOTE_UDP_ENCAPS_PORT");
    }
    /* usrsctp's path MTU is what is left for chunks. */
    struct sctp_paddrparams path = {
        .spp_flags = SPP_PMTUD_DISABLE,
        .spp_pathmtu = mtu - IPV6_HEADER - UDP_HEADER - SCTP_HEADER,
    };
    path.spp_address.ss_family = AF_INET6;
    set(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path, "SCTP_PEER_ADDR_PARAMS");
    struct sockaddr_in6 own = loopback(port);
    if (usrsctp_bind(socket, (struct sockaddr *)&own, sizeof own) < 0)
        fail("usrsctp_bind");
    return socket;
}

static void send_all(struct socket *socket, uint16_t port, size_t size, double seconds)
{
    struct sockaddr_in6 peer = loopback(port);
    if (usrsctp_connect(socket, (struct sockaddr *)&peer, sizeof peer) < 0)
        fail("usrsctp_connect");
    for (size_t i = 0; i < size; i++)
        buffer[i] = (char)i;
    double end = now() + seconds;
    while (now() < end)
        if (usrsctp_sendv(socket, buffer, size, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0)
            fail("usrsctp_sendv");
}

static void receive_all(struct socket *socket)
{
    if (usrsctp_listen(socket, 1) < 0)
        fail("usrsctp_listen");
    struct socket *peer = usrsctp_accept(socket, NULL, NULL);
    if (peer == NULL)
        fail("usrsctp_accept");
    uint64_t bytes = 0;
    double first = 0, last = 0;
    for (;;) {
        struct sockaddr_in6 from;
        socklen_t from_length = sizeof from, info_length = 0;
        unsigned info_type = 0;
        int flags = 0;
        ssize_t n = usrsctp_recvv(peer, buffer, sizeof buffer, (struct sockaddr *)&from, &from_length, NULL,
                                  &info_length, &info_type, &flags);
        if (n <= 0)
            break;
        last = now();
        if (bytes == 0)
            first = last;
        bytes += (uint64_t)n;
    }
    printf("%" PRIu64 " %.9f\n", bytes, last - first);
    usrsctp_close(peer);
}

static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value <= 0) {
        fprintf(stderr, "usrsctp_bulk: `%s`: expected a positive number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    int sending = argc == 9 && strcmp(argv[1], "send") == 0;
    if (!sending && !(argc == 6 && strcmp(argv[1], "receive") == 0)) {
        fprintf(stderr, "usrsctp_bulk: expected send or receive and its numbers, see usrsctp_bulk.c\n");
        return 2;
    }
    uint16_t peer_udp_port = sending ? (uint16_t)number(argv[2]) : 0;
    char **rest = argv + (sending ? 3 : 2);
    uint16_t own_udp_port = (uint16_t)number(rest[0]);
    uint16_t port = (uint16_t)number(rest[1]);
    usrsctp_init(own_udp_port, NULL, debug);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_blackhole(2);
    if (sending) {
        size_t size = (size_t)number(rest[2]);
        if (size > MAX_MESSAGE) {
            fprintf(stderr, "usrsctp_bulk: a message has at most %d bytes\n", MAX_MESSAGE);
            return 2;
        }
        struct socket *socket =
            open_socket((uint16_t)(port + 1), peer_udp_port, (uint32_t)number(rest[3]), (int)number(rest[4]));
        send_all(socket, port, size, (double)number(rest[5]));
        usrsctp_close(socket);
    } else {
        struct socket *socket = open_socket(port, 0, (uint32_t)number(rest[2]), (int)number(rest[3]));
        receive_all(socket);
        usrsctp_close(socket);
    }
    /* The association is shut down in the background. */
    for (int i = 0; usrsctp_finish() != 0 && i < 500; i++)
        usleep(10000);
    return 0;
}
