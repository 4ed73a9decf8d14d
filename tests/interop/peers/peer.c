/*
 * peer: one end of an SCTP association on an implementation that is not ours, driven by lines on standard input.
 *
 *   peer listen|connect PORT OPTION...
 *     local=ADDRESS remote=ADDRESS              IPv6, each up to four times
 *     udp=LOCAL:REMOTE                          UDP encapsulation (RFC 6951); 0:0 for none
 *     rto=INITIAL:MIN:MAX hb=MS sack=MS         milliseconds
 *     path-retrans=N association-retrans=N
 *     auth=0|1 asconf=0|1 hmac=1|3 key=ID:HEX auth-chunk=TYPE
 *     buffer=BYTES                              of sending and receiving
 *     echo=1                                    send every message back
 *     log=1                                     a line per received message
 *
 * Commands:
 *   send COUNT SIZE GAP_US    messages of the pattern, paced by the clock; answered by `sent`
 *   add|delete ADDRESS        own addresses (ASCONF)
 *   primary ADDRESS           of the peer, to send to
 *   peer-primary ADDRESS      own, that the peer shall send to (ASCONF)
 *   status | shutdown | abort | quit
 *
 * Every line of output is `NANOSECONDS EVENT KEY=VALUE...`, by CLOCK_MONOTONIC.
 */
#include "pattern.h"
#include "stack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_MESSAGE = 65536 };

struct options options = {
    .rto_initial = 1000,
    .rto_min = 1000,
    .rto_max = 60000,
    .path_max_retrans = 5,
    .association_max_retrans = 10,
    .heartbeat_interval = 30000,
    .sack_delay = 200,
    .send_buffer = 1 << 20,
    .receive_buffer = 1 << 20,
    .auth = true,
    .asconf = true,
};

static bool listening, echo, log_messages;
static atomic_intptr_t current = -1;
static atomic_uint_fast64_t received_bytes, received_messages, wrong_bytes;
static uint64_t sent_bytes;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void event(const char *format, ...)
{
    char line[512];
    va_list arguments;
    int length = snprintf(line, sizeof line, "%" PRIu64 " ", now_ns());
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    va_end(arguments);
    line[length] = '\n';
    /* One write per line: lines of several threads do not mix, and none is lost in a buffer. */
    pthread_mutex_lock(&output);
    if (write(STDOUT_FILENO, line, (size_t)length + 1) < 0)
        _exit(1);
    pthread_mutex_unlock(&output);
}

static void usage(const char *text)
{
    fprintf(stderr, "peer: %s\n", text);
    exit(2);
}

static struct sockaddr_in6 address_of(const char *text, uint16_t port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET6, text, &address.sin6_addr) != 1)
        usage("not an IPv6 address");
    return address;
}

static void parse_key(const char *text)
{
    const char *hex = strchr(text, ':');
    if (hex == NULL || strlen(hex + 1) / 2 > MAX_KEY)
        usage("key=ID:HEX");
    options.key_id = (uint16_t)atoi(text);
    for (hex++; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        char digits[3] = {hex[0], hex[1], '\0'};
        options.key[options.key_bytes++] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static void parse_option(char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL)
        usage(text);
    *value++ = '\0';
    uint32_t number = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(text, "local") == 0 && options.locals < MAX_ADDRESSES)
        options.local[options.locals++] = address_of(value, options.port);
    else if (strcmp(text, "remote") == 0 && options.remotes < MAX_ADDRESSES)
        options.remote[options.remotes++] = address_of(value, options.port);
    else if (strcmp(text, "udp") == 0)
        sscanf(value, "%" SCNu16 ":%" SCNu16, &options.udp_local, &options.udp_remote);
    else if (strcmp(text, "rto") == 0)
        sscanf(value, "%" SCNu32 ":%" SCNu32 ":%" SCNu32, &options.rto_initial, &options.rto_min, &options.rto_max);
    else if (strcmp(text, "hb") == 0)
        options.heartbeat_interval = number;
    else if (strcmp(text, "sack") == 0)
        options.sack_delay = number;
    else if (strcmp(text, "path-retrans") == 0)
        options.path_max_retrans = (uint16_t)number;
    else if (strcmp(text, "association-retrans") == 0)
        options.association_max_retrans = (uint16_t)number;
    else if (strcmp(text, "auth") == 0)
        options.auth = number != 0;
    else if (strcmp(text, "asconf") == 0)
        options.asconf = number != 0;
    else if (strcmp(text, "hmac") == 0)
        options.hmac = (uint16_t)number;
    else if (strcmp(text, "key") == 0)
        parse_key(value);
    else if (strcmp(text, "auth-chunk") == 0 && options.auth_chunk_count < MAX_CHUNKS)
        options.auth_chunks[options.auth_chunk_count++] = (uint8_t)number;
    else if (strcmp(text, "buffer") == 0)
        options.send_buffer = options.receive_buffer = number;
    else if (strcmp(text, "echo") == 0)
        echo = number != 0;
    else if (strcmp(text, "log") == 0)
        log_messages = number != 0;
    else
        usage(text);
}

static void status(const char *name)
{
    event("%s messages=%" PRIu64 " bytes=%" PRIu64 " wrong=%" PRIu64, name, (uint64_t)received_messages,
          (uint64_t)received_bytes, (uint64_t)wrong_bytes);
}

static void receive_all(stack_socket association)
{
    static uint8_t buffer[MAX_MESSAGE];
    size_t length = 0;
    received_bytes = received_messages = wrong_bytes = 0;
    for (;;) {
        struct message part = stack_receive(association, buffer + length, sizeof buffer - length);
        if (part.kind == RECEIVED_END)
            break;
        if (part.kind == RECEIVED_NOTIFICATION)
            continue;
        wrong_bytes += pattern_wrong(buffer + length, part.length, received_bytes);
        received_bytes += part.length;
        length += part.length;
        if (!part.end_of_record && length < sizeof buffer)
            continue;
        received_messages++;
        if (log_messages)
            event("recv n=%" PRIu64 " length=%zu stream=%u", (uint64_t)received_messages, length, part.stream);
        if (echo && stack_send(association, buffer, length, part.stream) < 0)
            event("send-error error=%s", strerror(errno));
        length = 0;
    }
    status("end");
}

static void *serve(void *unused)
{
    (void)unused;
    stack_socket socket = stack_open();
    if (socket < 0)
        event("fatal call=open error=%s", strerror(errno)), exit(1);
    if (!listening) {
        current = socket;
        event("ready");
        if (stack_connect(socket) < 0)
            event("not-connected error=%s", strerror(errno));
        receive_all(socket);
        current = -1;
        stack_close(socket);
        return NULL;
    }
    if (stack_listen(socket) < 0)
        event("fatal call=listen error=%s", strerror(errno)), exit(1);
    event("ready");
    for (;;) {
        stack_socket accepted = stack_accept(socket);
        if (accepted < 0) {
            event("fatal call=accept error=%s", strerror(errno));
            exit(1);
        }
        event("accepted");
        current = accepted;
        receive_all(accepted);
        current = -1;
        stack_close(accepted);
    }
}

struct sending {
    uint64_t count, size, gap_us;
};

static void *send_all(void *argument)
{
    struct sending *sending = argument;
    uint8_t bytes[MAX_MESSAGE];
    uint64_t start = now_ns(), sent = 0;
    for (; sent < sending->count; sent++) {
        uint64_t due = start + sent * sending->gap_us * 1000;
        struct timespec time = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
        if (sending->gap_us > 0)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
        pattern_fill(bytes, sending->size, sent_bytes);
        if (stack_send(current, bytes, sending->size, 0) < 0) {
            event("send-error error=%s", strerror(errno));
            break;
        }
        sent_bytes += sending->size;
    }
    event("sent messages=%" PRIu64 " bytes=%" PRIu64, sent, sent * sending->size);
    free(sending);
    return NULL;
}

static void start_sending(const char *line)
{
    struct sending *sending = malloc(sizeof *sending);
    pthread_t thread;
    if (sending == NULL ||
        sscanf(line, "%*s %" SCNu64 " %" SCNu64 " %" SCNu64, &sending->count, &sending->size, &sending->gap_us) != 3 ||
        sending->size == 0 || sending->size > MAX_MESSAGE)
        usage("send COUNT SIZE GAP_US");
    pthread_create(&thread, NULL, send_all, sending);
    pthread_detach(thread);
}

static void command(char *line)
{
    char verb[16] = "", text[64] = "";
    int result;
    line[strcspn(line, "\n")] = '\0';
    sscanf(line, "%15s %63s", verb, text);
    if (strcmp(verb, "quit") == 0) {
        event("quit");
        _exit(0);
    } else if (strcmp(verb, "status") == 0) {
        status("status");
        return;
    } else if (current == -1) {
        event("error command=%s error=no association", verb);
        return;
    } else if (strcmp(verb, "send") == 0) {
        start_sending(line);
        return;
    } else if (strcmp(verb, "shutdown") == 0) {
        result = stack_shutdown(current);
    } else if (strcmp(verb, "abort") == 0) {
        result = stack_abort(current);
        if (result > 0) {
            status("end");
            _exit(0);
        }
    } else {
        struct sockaddr_in6 address = address_of(text, options.port);
        if (strcmp(verb, "add") == 0)
            result = stack_add_address(current, &address);
        else if (strcmp(verb, "delete") == 0)
            result = stack_delete_address(current, &address);
        else if (strcmp(verb, "primary") == 0)
            result = stack_set_primary(current, &address);
        else if (strcmp(verb, "peer-primary") == 0)
            result = stack_set_peer_primary(current, &address);
        else
            usage("unknown command");
    }
    if (result < 0)
        event("error command=%s error=%s", line, strerror(errno));
    else
        event("done command=%s", verb);
}

int main(int count, char **arguments)
{
    char line[128];
    pthread_t thread;
    if (count < 4 || (strcmp(arguments[1], "listen") != 0 && strcmp(arguments[1], "connect") != 0))
        usage("peer listen|connect PORT OPTION...");
    listening = arguments[1][0] == 'l';
    options.port = (uint16_t)atoi(arguments[2]);
    for (int i = 3; i < count; i++)
        parse_option(arguments[i]);
    if (options.locals == 0 || (!listening && options.remotes == 0))
        usage("local=ADDRESS is missing, or remote=ADDRESS of connect");
    stack_start();
    pthread_create(&thread, NULL, serve, NULL);
    while (fgets(line, sizeof line, stdin) != NULL)
        command(line);
    return 0;
}
