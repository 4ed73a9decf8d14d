/*
 * What peer.c needs of an SCTP implementation: the socket calls of RFC 6458, which usrsctp and Linux spell differently.
 * A socket is one-to-one style; addresses are IPv6. Calls return -1 and set errno, unless said otherwise.
 */
#ifndef STACK_H
#define STACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MAX_ADDRESSES = 4, MAX_CHUNKS = 8, MAX_KEY = 64 };

struct options {
    struct sockaddr_in6 local[MAX_ADDRESSES], remote[MAX_ADDRESSES];
    int locals, remotes;
    uint16_t port;
    uint16_t udp_local, udp_remote;           /* 0: protocol 132 */
    uint32_t rto_initial, rto_min, rto_max;   /* milliseconds */
    uint16_t path_max_retrans, association_max_retrans;
    uint32_t heartbeat_interval;              /* milliseconds */
    uint32_t sack_delay;                      /* milliseconds */
    uint32_t send_buffer, receive_buffer;     /* bytes */
    bool auth, asconf;
    uint16_t hmac;                            /* 0: the stack's own order of preference */
    uint16_t key_id;
    uint8_t key[MAX_KEY];
    uint16_t key_bytes;                       /* 0: the null key */
    uint8_t auth_chunks[MAX_CHUNKS];          /* chunk types that the peer has to authenticate */
    int auth_chunk_count;
};

typedef intptr_t stack_socket;

enum received { RECEIVED_DATA, RECEIVED_NOTIFICATION, RECEIVED_END };

struct message {
    enum received kind;
    size_t length;
    uint16_t stream;
    bool end_of_record;
};

extern struct options options;

/* peer.c: one line of the log, with the time in front. */
void event(const char *format, ...) __attribute__((format(printf, 1, 2)));

void stack_start(void);
stack_socket stack_open(void);
int stack_listen(stack_socket listener);
stack_socket stack_accept(stack_socket listener);
int stack_connect(stack_socket association);
ssize_t stack_send(stack_socket association, const uint8_t *bytes, size_t length, uint16_t stream);
/* A part of a message, or a notification (which has been reported), or the end. */
struct message stack_receive(stack_socket association, uint8_t *buffer, size_t size);
int stack_add_address(stack_socket association, const struct sockaddr_in6 *address);
int stack_delete_address(stack_socket association, const struct sockaddr_in6 *address);
/* The peer's address that data is sent to. */
int stack_set_primary(stack_socket association, const struct sockaddr_in6 *address);
/* Our address that the peer is asked to send to. */
int stack_set_peer_primary(stack_socket association, const struct sockaddr_in6 *address);
int stack_shutdown(stack_socket association);
/* 1 if the association is aborted by the end of the program. */
int stack_abort(stack_socket association);
void stack_close(stack_socket association);

#endif
