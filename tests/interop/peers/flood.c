/* An attacker at line rate: sends packets over a packet socket, so many a second, past the queues of the device.
 *
 *     flood DEVICE MAC RATE SECONDS
 *
 * Standard input has what to send, a line for each kind, in turn:
 *
 *     HEX [random=FROM-TO]... [sum=PROTOCOL@UPPER+FIELD,SOURCE]
 *
 * an IPv6 packet; bytes that are drawn anew for each; and where its checksum goes: a 16-bit field at UPPER + FIELD, over the upper
 * layer from UPPER on with a pseudo-header that has the address at SOURCE for its source. Ends after so many seconds, and prints
 * what it has sent as JSON. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST_KINDS = 64, MOST_RANGES = 8, LONGEST = 1500, BATCH = 16, HEADER = 14 };

struct kind {
    uint8_t packet[LONGEST];
    int length;
    int ranges, from[MOST_RANGES], to[MOST_RANGES];
    int protocol, upper, field, source;
};

static struct kind kinds[MOST_KINDS];
static uint64_t state;

static uint64_t draw(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int parse(char *line, struct kind *kind) {
    char *hex = strtok(line, " \n");
    if (hex == NULL)
        return 0;
    for (unsigned byte; kind->length < LONGEST && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        kind->packet[kind->length++] = byte;
    for (char *word; (word = strtok(NULL, " \n")) != NULL;) {
        int a, b, c, d;
        if (sscanf(word, "random=%d-%d", &a, &b) == 2 && kind->ranges < MOST_RANGES && a >= 0 && b <= kind->length) {
            kind->from[kind->ranges] = a;
            kind->to[kind->ranges++] = b;
        } else if (sscanf(word, "sum=%d@%d+%d,%d", &a, &b, &c, &d) == 4 && b + c + 2 <= kind->length &&
                   d + 16 <= kind->length) {
            kind->protocol = a;
            kind->upper = b;
            kind->field = c;
            kind->source = d;
        } else {
            fprintf(stderr, "flood: %s: expected random=FROM-TO or sum=PROTOCOL@UPPER+FIELD,SOURCE\n", word);
            exit(2);
        }
    }
    return kind->length >= 40;
}

static uint32_t add(uint32_t sum, const uint8_t *bytes, int length) {
    for (int n = 0; n + 1 < length; n += 2)
        sum += bytes[n] << 8 | bytes[n + 1];
    return length % 2 ? sum + (bytes[length - 1] << 8) : sum;
}

/* The next packet of a kind, drawn and summed up. */
static void make(struct kind *kind, uint8_t *out) {
    for (int range = 0; range < kind->ranges; range++)
        for (int at = kind->from[range]; at < kind->to[range]; at += 8) {
            uint64_t bytes = draw();
            int length = kind->to[range] - at;
            memcpy(kind->packet + at, &bytes, length < 8 ? length : 8);
        }
    if (kind->protocol) {
        uint8_t *field = kind->packet + kind->upper + kind->field;
        int length = kind->length - kind->upper;
        field[0] = field[1] = 0;
        uint32_t sum = add(kind->protocol + length, kind->packet + kind->source, 16);
        sum = add(add(sum, kind->packet + 24, 16), kind->packet + kind->upper, length);
        while (sum >> 16)
            sum = (sum & 0xffff) + (sum >> 16);
        sum = ~sum & 0xffff;
        field[0] = sum >> 8;
        field[1] = sum;
    }
    memcpy(out, kind->packet, kind->length);
}

int main(int count, char **words) {
    static char line[4 * LONGEST];
    static uint8_t frames[BATCH][HEADER + LONGEST];
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH];
    struct ifreq request = {0};
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IPV6)};
    uint8_t header[HEADER] = {0};
    int kind = 0, all = 0, on = 1;
    if (count != 5 || sscanf(words[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", header, header + 1, header + 2, header + 3,
                             header + 4, header + 5) != 6) {
        fprintf(stderr, "flood DEVICE MAC RATE SECONDS\n");
        return 2;
    }
    double rate = atof(words[3]), seconds = atof(words[4]);
    while (all < MOST_KINDS && fgets(line, sizeof line, stdin) != NULL)
        all += parse(line, &kinds[all]);
    if (all == 0 || rate <= 0)
        return 2;
    int out = socket(AF_PACKET, SOCK_RAW, 0);
    if (out < 0)
        fail("socket");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", words[1]);
    if (ioctl(out, SIOCGIFINDEX, &request) < 0)
        fail(words[1]);
    to.sll_ifindex = request.ifr_ifindex;
    if (bind(out, (struct sockaddr *)&to, sizeof to) < 0)
        fail("bind");
    if (ioctl(out, SIOCGIFHWADDR, &request) < 0)
        fail(words[1]);
    memcpy(header + 6, request.ifr_hwaddr.sa_data, 6);
    header[12] = 0x86;
    header[13] = 0xdd;
    setsockopt(out, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
    memset(messages, 0, sizeof messages);
    for (int n = 0; n < BATCH; n++) {
        memcpy(frames[n], header, HEADER);
        messages[n].msg_hdr.msg_iov = &parts[n];
        messages[n].msg_hdr.msg_iovlen = 1;
    }
    struct timespec begun, due, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    state = (uint64_t)begun.tv_nsec << 20 ^ begun.tv_sec;
    uint64_t sent = 0, refused = 0, made = 0;
    for (;;) {
        /* who was held up does not make up for it: packets that are late are left out */
        clock_gettime(CLOCK_MONOTONIC, &now);
        double passed = now.tv_sec - begun.tv_sec + (now.tv_nsec - begun.tv_nsec) / 1e9;
        if (passed >= seconds)
            break;
        if (made + 64 * BATCH < passed * rate)
            made = passed * rate;
        for (int n = 0; n < BATCH; n++) {
            make(&kinds[kind], frames[n] + HEADER);
            parts[n] = (struct iovec){frames[n], HEADER + kinds[kind].length};
            kind = (kind + 1) % all;
        }
        made += BATCH;
        for (int n = 0; n < BATCH;) {
            int done = sendmmsg(out, messages + n, BATCH - n, 0);
            if (done <= 0) {
                refused++;
                n++;
            } else {
                sent += done;
                n += done;
            }
        }
        double next = made / rate;
        due.tv_sec = begun.tv_sec + (time_t)next;
        due.tv_nsec = begun.tv_nsec + (long)((next - (time_t)next) * 1e9);
        if (due.tv_nsec >= 1000000000) {
            due.tv_sec++;
            due.tv_nsec -= 1000000000;
        }
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
            ;
    }
    printf("{\"sent\": %llu, \"refused\": %llu}\n", (unsigned long long)sent, (unsigned long long)refused);
    return 0;
}
