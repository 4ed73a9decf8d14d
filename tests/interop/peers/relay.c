/*
 * relay: the links between test hosts. Forwards Ethernet frames between pairs of ports with a delay, a rate and random
 * loss, takes links down and up on command, and records what it saw as pcapng.
 *
 *   relay PCAP PCAP_FRAMES SEED LINK...
 *   LINK = DELAY_US,PORT,PORT        one-way delay; the link's number is its position, from 0
 *   PORT = tap:NETNS_PATH:NAME       a TAP device made in that namespace; it vanishes with this process
 *        | unix:LOCAL:REMOTE         datagram sockets, one frame each (qemu's -netdev dgram)
 *
 * Commands on standard input, one a line, each answered by one line on standard output:
 *   down LINK | up LINK              frames that arrive while a link is down, or are under way when it goes, are lost
 *   oneway LINK SIDE down|up         the same for frames from port SIDE (0 or 1) only
 *   loss LINK PROBABILITY            independent losses of SCTP and UDP frames, both directions
 *   duplicate LINK PROBABILITY       frames delivered twice
 *   reorder LINK PROBABILITY         frames held back for half the link's delay (at least 0.5 ms)
 *   delay LINK MICROSECONDS
 *   rate LINK BITS_PER_SECOND        0 for no limit
 *   stats
 * End of input ends the program.
 *
 * The capture has each frame once, when it enters the link; one that is lost on the link carries a comment that says
 * so. Frames whose first SCTP chunk is DATA or SACK are recorded only up to PCAP_FRAMES, all others always. Times are
 * nanoseconds of CLOCK_MONOTONIC, as in the peers' logs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_LINKS = 4,
    MAX_FRAME = 2048,
    QUEUE_FRAMES = 8192,
    BURST = 64,
    ETHERNET_HEADER = 14,
    IPV6_HEADER = 40,
    UDP_HEADER = 8,
    SCTP_HEADER = 12,
    PROTOCOL_UDP = 17,
    PROTOCOL_SCTP = 132,
    ENCAPSULATION_PORT = 9899,
};

struct frame {
    uint64_t due;
    uint32_t length;
    uint8_t bytes[MAX_FRAME];
};

/* One direction of a link: from port `side` to the other one. */
struct direction {
    struct frame *queue;
    uint32_t head, count;
    uint64_t busy_until, last_due, random;
    bool down;
    uint64_t forwarded, lost, refused, overflow;
};

struct port {
    int fd;
    struct sockaddr_un remote;
    socklen_t remote_length;
};

struct link {
    struct port ports[2];
    struct direction directions[2];
    uint64_t delay_ns, rate_bps;
    double loss, duplicate, reorder;
    bool down;
};

static struct link links[MAX_LINKS];
static int link_count;
static FILE *capture;
static uint64_t capture_room;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("relay: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* splitmix64, as a fraction in [0, 1). */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

/* pcapng: section header, interface description, enhanced packet. */

static void put32(uint32_t value)
{
    fwrite(&value, sizeof value, 1, capture);
}

static void put_option(uint16_t code, const void *value, uint16_t length)
{
    static const uint8_t zeros[4];
    fwrite(&code, 2, 1, capture);
    fwrite(&length, 2, 1, capture);
    fwrite(value, 1, length, capture);
    fwrite(zeros, 1, -length & 3u, capture);
}

static void open_capture(const char *path)
{
    static const uint8_t nanoseconds = 9;
    capture = fopen(path, "wb");
    if (capture == NULL)
        fail("%s: %s", path, strerror(errno));
    setvbuf(capture, NULL, _IOFBF, 1 << 20);
    put32(0x0a0d0d0a), put32(28), put32(0x1a2b3c4d), put32(1), put32(0xffffffff), put32(0xffffffff), put32(28);
    for (int i = 0; i < link_count; i++) {
        uint32_t length = 20 + 8 + 12 + 4;
        char name[] = {'l', 'i', 'n', 'k', (char)('0' + i)};
        put32(1), put32(length), put32(1), put32(0);
        put_option(2, name, sizeof name), put_option(9, &nanoseconds, 1), put32(0), put32(length);
    }
}

static void record(int number, const uint8_t *bytes, uint32_t length, uint64_t now, const char *lost)
{
    static const uint8_t zeros[4];
    uint32_t padding = -length & 3u;
    uint32_t comment = lost == NULL ? 0 : (uint32_t)strlen(lost);
    uint32_t total = 32 + length + padding + (comment == 0 ? 0 : 4 + comment + (-comment & 3u) + 4);
    put32(6), put32(total), put32((uint32_t)number), put32((uint32_t)(now >> 32)), put32((uint32_t)now);
    put32(length), put32(length);
    fwrite(bytes, 1, length, capture);
    fwrite(zeros, 1, padding, capture);
    if (comment != 0)
        put_option(1, lost, (uint16_t)comment), put32(0);
    put32(total);
}

/* The protocol of the IPv6 (or IPv4) packet in a frame, 0 for anything else; and whether it carries DATA or SACK first. */
static int protocol_of(const uint8_t *bytes, uint32_t length, bool *bulk)
{
    uint32_t offset = ETHERNET_HEADER + IPV6_HEADER;
    int protocol = 0;
    *bulk = false;
    if (length >= offset && bytes[12] == 0x86 && bytes[13] == 0xdd) {
        protocol = bytes[ETHERNET_HEADER + 6];
    } else if (length >= ETHERNET_HEADER + 20 && bytes[12] == 0x08 && bytes[13] == 0x00) {
        protocol = bytes[ETHERNET_HEADER + 9];
        offset = ETHERNET_HEADER + (bytes[ETHERNET_HEADER] & 15u) * 4u;
    }
    if (protocol == PROTOCOL_UDP)
        offset += UDP_HEADER;
    if ((protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP) && length > offset + SCTP_HEADER) {
        uint8_t chunk = bytes[offset + SCTP_HEADER];
        *bulk = chunk == 0 || chunk == 3;
    }
    return protocol;
}

static bool deliver(struct port *port, const uint8_t *bytes, uint32_t length, bool *refused)
{
    ssize_t written = port->remote_length == 0 ? write(port->fd, bytes, length)
                                               : sendto(port->fd, bytes, length, MSG_DONTWAIT,
                                                        (struct sockaddr *)&port->remote, port->remote_length);
    *refused = written < 0 && errno != EAGAIN && errno != ENOBUFS;
    return written >= 0 || *refused;
}

static void enqueue(struct direction *direction, const uint8_t *bytes, uint32_t length, uint64_t due)
{
    if (direction->count == QUEUE_FRAMES) {
        direction->overflow++;
        return;
    }
    /* Behind every frame that is due no later: a frame held back is overtaken, nothing else is. */
    uint32_t position = direction->count++;
    while (position > 0) {
        struct frame *before = &direction->queue[(direction->head + position - 1) % QUEUE_FRAMES];
        if (before->due <= due)
            break;
        direction->queue[(direction->head + position) % QUEUE_FRAMES] = *before;
        position--;
    }
    struct frame *frame = &direction->queue[(direction->head + position) % QUEUE_FRAMES];
    frame->due = due;
    frame->length = length;
    memcpy(frame->bytes, bytes, length);
}

static void take_in(int number, int side, const uint8_t *bytes, uint32_t length)
{
    struct link *link = &links[number];
    struct direction *direction = &link->directions[side];
    uint64_t now = now_ns();
    bool bulk;
    int protocol = protocol_of(bytes, length, &bulk);
    bool transport = protocol == PROTOCOL_SCTP || protocol == PROTOCOL_UDP;
    const char *lost = NULL;
    if (link->down || direction->down)
        lost = "lost: link down";
    else if (transport && draw(&direction->random) < link->loss)
        lost = "lost: at random";
    if (!bulk || capture_room > 0) {
        record(number, bytes, length, now, lost);
        capture_room -= bulk;
    }
    if (lost != NULL) {
        direction->lost++;
        return;
    }
    uint64_t start = now > direction->busy_until ? now : direction->busy_until;
    if (link->rate_bps > 0)
        direction->busy_until = start + (uint64_t)length * 8u * 1000000000u / link->rate_bps;
    else
        direction->busy_until = now;
    uint64_t due = direction->busy_until + link->delay_ns;
    if (due < direction->last_due)
        due = direction->last_due;
    if (transport && link->reorder > 0 && draw(&direction->random) < link->reorder) {
        uint64_t held = link->delay_ns / 2 > 500000 ? link->delay_ns / 2 : 500000;
        enqueue(direction, bytes, length, due + held);
        return;
    }
    direction->last_due = due;
    enqueue(direction, bytes, length, due);
    if (transport && link->duplicate > 0 && draw(&direction->random) < link->duplicate)
        enqueue(direction, bytes, length, due);
}

/* Delivers what is due; returns when the next frame is. */
static uint64_t give_out(void)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < link_count; i++)
        for (int side = 0; side < 2; side++) {
            struct direction *direction = &links[i].directions[side];
            while (direction->count > 0) {
                struct frame *frame = &direction->queue[direction->head];
                uint64_t now = now_ns();
                bool refused = false;
                if (frame->due > now) {
                    next = frame->due < next ? frame->due : next;
                    break;
                }
                if (!deliver(&links[i].ports[1 - side], frame->bytes, frame->length, &refused)) {
                    /* The receiver's queue is full: it is slow, not gone. */
                    next = now + 100000 < next ? now + 100000 : next;
                    break;
                }
                direction->refused += refused;
                direction->forwarded += !refused;
                direction->head = (direction->head + 1) % QUEUE_FRAMES;
                direction->count--;
            }
        }
    return next;
}

static void set_down(struct direction *direction, bool down)
{
    if (down) {
        direction->lost += direction->count;
        direction->count = 0;
    }
    direction->down = down;
}

static void stats(void)
{
    for (int i = 0; i < link_count; i++)
        for (int side = 0; side < 2; side++) {
            struct direction *direction = &links[i].directions[side];
            printf(" link%d.%d=%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64, i, side, direction->forwarded,
                   direction->lost, direction->overflow, direction->refused);
        }
}

static void command(char *line)
{
    char verb[16] = "", third[16] = "";
    int number = 0, side = 0;
    double value = 0;
    sscanf(line, "%15s %d", verb, &number);
    if (number < 0 || number >= link_count)
        fail("no link %d", number);
    struct link *link = &links[number];
    sscanf(line, "%*s %*d %lf", &value);
    if (strcmp(verb, "down") == 0 || strcmp(verb, "up") == 0) {
        link->down = verb[0] == 'd';
        for (side = 0; side < 2; side++)
            set_down(&link->directions[side], link->down);
    } else if (strcmp(verb, "oneway") == 0 && sscanf(line, "%*s %*d %d %15s", &side, third) == 2) {
        set_down(&link->directions[side & 1], strcmp(third, "down") == 0);
    } else if (strcmp(verb, "loss") == 0) {
        link->loss = value;
    } else if (strcmp(verb, "duplicate") == 0) {
        link->duplicate = value;
    } else if (strcmp(verb, "reorder") == 0) {
        link->reorder = value;
    } else if (strcmp(verb, "delay") == 0) {
        link->delay_ns = (uint64_t)(value * 1000);
    } else if (strcmp(verb, "rate") == 0) {
        link->rate_bps = (uint64_t)value;
    } else if (strcmp(verb, "stats") != 0) {
        fail("unknown command %s", line);
    }
    printf("%" PRIu64 " %s", now_ns(), verb);
    if (strcmp(verb, "stats") == 0)
        stats();
    putchar('\n');
    fflush(stdout);
    fflush(capture);
}

static int open_tap(const char *netns, const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(netns, O_RDONLY | O_CLOEXEC);
    if (other < 0 || setns(other, CLONE_NEWNET) < 0)
        fail("%s: %s", netns, strerror(errno));
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
        fail("/dev/net/tun: %s", strerror(errno));
    if (setns(own, CLONE_NEWNET) < 0)
        fail("back to the own namespace: %s", strerror(errno));
    close(own);
    close(other);
    return fd;
}

static void open_port(struct port *port, char *text)
{
    char *rest = text, *kind = strsep(&rest, ":"), *first = strsep(&rest, ":");
    if (first == NULL || rest == NULL)
        fail("%s: a port is tap:NETNS:NAME or unix:LOCAL:REMOTE", text);
    if (strcmp(kind, "tap") == 0) {
        port->fd = open_tap(first, rest);
        return;
    }
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(local.sun_path, sizeof local.sun_path, "%s", first);
    port->remote.sun_family = AF_UNIX;
    snprintf(port->remote.sun_path, sizeof port->remote.sun_path, "%s", rest);
    port->remote_length = sizeof port->remote;
    /* What an earlier relay has left. */
    unlink(first);
    port->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->fd < 0 || bind(port->fd, (struct sockaddr *)&local, sizeof local) < 0)
        fail("%s: %s", first, strerror(errno));
}

static void open_link(char *text, uint64_t seed)
{
    if (link_count == MAX_LINKS)
        fail("at most %d links", MAX_LINKS);
    struct link *link = &links[link_count++];
    char *rest = text;
    link->delay_ns = strtoull(strsep(&rest, ","), NULL, 10) * 1000;
    for (int side = 0; side < 2; side++) {
        char *port = strsep(&rest, ",");
        if (port == NULL)
            fail("a link is DELAY_US,PORT,PORT");
        open_port(&link->ports[side], port);
        link->directions[side].queue = calloc(QUEUE_FRAMES, sizeof(struct frame));
        link->directions[side].random = seed * 16 + (uint64_t)link_count * 2 + (uint64_t)side;
    }
}

static void run(void)
{
    struct pollfd waiting[1 + 2 * MAX_LINKS] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    int count = 1;
    for (int i = 0; i < link_count; i++)
        for (int side = 0; side < 2; side++)
            waiting[count++] = (struct pollfd){.fd = links[i].ports[side].fd, .events = POLLIN};
    for (;;) {
        uint64_t next = give_out(), now = now_ns();
        uint64_t wait = next == UINT64_MAX ? 3600000000000u : next > now ? next - now : 0;
        struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000u), .tv_nsec = (long)(wait % 1000000000u)};
        if (ppoll(waiting, (nfds_t)count, &timeout, NULL) < 0 && errno != EINTR)
            fail("ppoll: %s", strerror(errno));
        for (int i = 1; i < count; i++) {
            uint8_t bytes[MAX_FRAME];
            if ((waiting[i].revents & POLLIN) == 0)
                continue;
            for (int burst = 0; burst < BURST; burst++) {
                ssize_t length = read(waiting[i].fd, bytes, sizeof bytes);
                if (length <= 0)
                    break;
                take_in((i - 1) / 2, (i - 1) % 2, bytes, (uint32_t)length);
            }
        }
        if (waiting[0].revents != 0) {
            /* A line is short and comes whole: its writer flushes after each. */
            char lines[4096], *rest = lines;
            ssize_t length = read(STDIN_FILENO, lines, sizeof lines - 1);
            if (length <= 0)
                return;
            lines[length] = '\0';
            for (char *line; (line = strsep(&rest, "\n")) != NULL;)
                if (*line != '\0')
                    command(line);
        }
    }
}

int main(int count, char **arguments)
{
    struct sched_param priority = {.sched_priority = 10};
    if (count < 5)
        fail("usage: relay PCAP PCAP_FRAMES SEED DELAY_US,PORT,PORT...");
    capture_room = strtoull(arguments[2], NULL, 10);
    for (int i = 4; i < count; i++)
        open_link(arguments[i], strtoull(arguments[3], NULL, 10));
    open_capture(arguments[1]);
    /* A relay that waits for a processor would be measured as part of the protocol. */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    bool real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    printf("%" PRIu64 " ready real_time=%d\n", now_ns(), real_time);
    fflush(stdout);
    run();
    fclose(capture);
    printf("%" PRIu64 " end", now_ns());
    stats();
    putchar('\n');
    return 0;
}
