/*
 * One end of a TCP connection over the kernel's sockets.
 *
 *   tcp_peer listen PORT [OPTION...]
 *   tcp_peer connect ADDRESS PORT [OPTION...]
 *
 * Options: cc=NAME (congestion control), rcvbuf=BYTES, sndbuf=BYTES, paused (does not read until told to).
 * Commands, a line each: send BYTES; flood (send until told otherwise), stop, pause, resume, close (this direction, after what
 * there is to send), reset. The end of the input resets what is still open.
 * Events, a line each, after the time in ns of CLOCK_MONOTONIC: listening, connected, progress (every 100 ms while something
 * comes), sent, end (the peer closed: bytes received, and how many of them were wrong), closed, failed. "segue-lab tcp" has the
 * same language. User data is the pattern, in each direction from its own offset 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

static int sock = -1;
static bool paused, flooding, closing, write_closed, peer_closed;
static uint64_t to_send, sent, received, wrong, told;
static int64_t told_at;
static const char *congestion_control;
static int receive_buffer, send_buffer;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

#define say(...) (printf("%lld ", (long long)now_ns()), printf(__VA_ARGS__), printf("\n"), fflush(stdout))

static void die(const char *what)
{
    fprintf(stderr, "tcp_peer: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void set_up(int fd)
{
    if (congestion_control &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_control, strlen(congestion_control)) != 0)
        die(congestion_control);
    if (receive_buffer && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer) != 0)
        die("rcvbuf");
    if (send_buffer && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer) != 0)
        die("sndbuf");
}

static void tell_info(const char *event)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &length);
    say("%s state=%d bytes=%llu wrong=%llu sent=%llu retransmits=%u rtt_us=%u cwnd=%u options=%u", event, info.tcpi_state,
        (unsigned long long)received, (unsigned long long)wrong, (unsigned long long)sent, info.tcpi_total_retrans,
        info.tcpi_rtt, info.tcpi_snd_cwnd, info.tcpi_options);
}

static void failed(void)
{
    say("failed error=%d bytes=%llu wrong=%llu sent=%llu text=%s", errno, (unsigned long long)received,
        (unsigned long long)wrong, (unsigned long long)sent, strerror(errno));
    exit(errno == ECONNRESET || errno == ECONNREFUSED || errno == EPIPE ? 3 : 1);
}

static void progress(bool always)
{
    int64_t now = now_ns();
    if (received != told && (always || now - told_at >= 100000000)) {
        say("progress bytes=%llu", (unsigned long long)received);
        told = received;
        told_at = now;
    }
}

static void read_some(void)
{
    static uint8_t bytes[1 << 18];
    ssize_t n = recv(sock, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        failed();
    if (n == 0) {
        peer_closed = true;
        progress(true);
        tell_info("end");
        return;
    }
    wrong += pattern_wrong(bytes, (size_t)n, received);
    received += (uint64_t)n;
    progress(false);
}

static void write_some(void)
{
    static uint8_t bytes[1 << 16];
    while (flooding || sent < to_send) {
        uint64_t left = flooding ? sizeof bytes : to_send - sent;
        size_t length = left < sizeof bytes ? (size_t)left : sizeof bytes;
        pattern_fill(bytes, length, sent);
        ssize_t n = send(sock, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            failed();
        sent += (uint64_t)n;
        if (!flooding && sent == to_send)
            say("sent bytes=%llu", (unsigned long long)sent);
    }
    if (closing && !write_closed) {
        if (shutdown(sock, SHUT_WR) != 0)
            failed();
        write_closed = true;
    }
}

static void reset(void)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(sock, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(sock);
    say("closed by=reset bytes=%llu wrong=%llu sent=%llu", (unsigned long long)received, (unsigned long long)wrong,
        (unsigned long long)sent);
    exit(0);
}

static void command(char *line)
{
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "send ", 5) == 0)
        to_send = sent > to_send ? sent + strtoull(line + 5, NULL, 10) : to_send + strtoull(line + 5, NULL, 10);
    else if (strcmp(line, "flood") == 0)
        flooding = true;
    else if (strcmp(line, "stop") == 0)
        flooding = false, to_send = sent;
    else if (strcmp(line, "pause") == 0)
        paused = true;
    else if (strcmp(line, "resume") == 0)
        paused = false;
    else if (strcmp(line, "close") == 0)
        closing = true;
    else if (strcmp(line, "info") == 0)
        tell_info("info");
    else if (strcmp(line, "reset") == 0)
        reset();
    else
        fprintf(stderr, "tcp_peer: unknown command `%s`\n", line);
}

static void take_commands(void)
{
    static char text[4096];
    static size_t length;
    ssize_t n = read(0, text + length, sizeof text - 1 - length);
    if (n <= 0)
        reset();
    length += (size_t)n;
    text[length] = 0;
    char *end;
    while ((end = strchr(text, '\n')) != NULL) {
        *end = 0;
        command(text);
        length -= (size_t)(end + 1 - text);
        memmove(text, end + 1, length + 1);
    }
}

static int listen_at(int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
        die("socket");
    set_up(fd);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        die("listen");
    say("listening port=%d", port);
    int accepted = accept(fd, NULL, NULL);
    if (accepted < 0)
        die("accept");
    close(fd);
    return accepted;
}

static int connect_to(const char *host, int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET6, host, &address.sin6_addr) != 1)
        die("address");
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd < 0)
        die("socket");
    set_up(fd);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        failed();
    return fd;
}

/* Whether everything is said and done: in TIME-WAIT the kernel keeps no socket, and shows CLOSE. */
static bool over(void)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    return peer_closed && write_closed && getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
           info.tcpi_state == TCP_CLOSE;
}

int main(int count, char **arguments)
{
    bool listens = count >= 3 && strcmp(arguments[1], "listen") == 0;
    int first = listens ? 3 : 4;
    if (!listens && (count < 4 || strcmp(arguments[1], "connect") != 0)) {
        fprintf(stderr, "tcp_peer: expected `listen PORT` or `connect ADDRESS PORT`\n");
        return 2;
    }
    for (int i = first; i < count; i++) {
        if (strncmp(arguments[i], "cc=", 3) == 0)
            congestion_control = arguments[i] + 3;
        else if (strncmp(arguments[i], "rcvbuf=", 7) == 0)
            receive_buffer = atoi(arguments[i] + 7);
        else if (strncmp(arguments[i], "sndbuf=", 7) == 0)
            send_buffer = atoi(arguments[i] + 7);
        else if (strcmp(arguments[i], "paused") == 0)
            paused = true;
        else {
            fprintf(stderr, "tcp_peer: unknown option `%s`\n", arguments[i]);
            return 2;
        }
    }
    sock = listens ? listen_at(atoi(arguments[2])) : connect_to(arguments[2], atoi(arguments[3]));
    tell_info("connected");
    while (!over()) {
        bool writes = flooding || sent < to_send || (closing && !write_closed);
        bool reads = !paused && !peer_closed;
        struct pollfd fds[] = {
            {.fd = 0, .events = POLLIN},
            {.fd = sock, .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))},
        };
        /* when there is nothing to read or write, errors of the socket are left alone, and its state is looked at */
        bool busy = reads || writes;
        if (poll(fds, busy ? 2 : 1, busy ? 100 : 10) < 0 && errno != EINTR)
            die("poll");
        if (fds[0].revents)
            take_commands();
        if (busy && reads && fds[1].revents & (POLLIN | POLLHUP | POLLERR))
            read_some();
        if (busy && writes && fds[1].revents & (POLLOUT | POLLERR))
            write_some();
        progress(false);
    }
    tell_info("closed");
    close(sock);
    return 0;
}
