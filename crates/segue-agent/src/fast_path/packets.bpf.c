// The packets of sessions in which nothing is to be thought about, in the kernel. See fast_path.rs for what comes here and when.
//
//   tap      at the packet socket of an interface: is a packet that arrived carried here? The agent is given all else that is its own
//   arrive   at the ingress of that interface, for the same packet right after: its addresses become identities, and it is the device's
//   leave    at the egress of the device: identities become addresses, and it is the interface's
//
// Nothing is decided here but that a packet is as those before it: its flow, addresses and nonce are known. What begins or ends
// something (SYN, FIN, RST), every extension header but the nonce, and all that is longer than the way takes go to the agent.

#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static void *(*map_lookup)(void *, const void *) = (void *)BPF_FUNC_map_lookup_elem;
static int (*load_bytes)(const void *, __u32, void *, __u32) = (void *)BPF_FUNC_skb_load_bytes;
static int (*store_bytes)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)BPF_FUNC_skb_store_bytes;
static int (*replace_checksum)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)BPF_FUNC_l4_csum_replace;
static __s64 (*difference)(const void *, __u32, const void *, __u32, __u32) = (void *)BPF_FUNC_csum_diff;
static int (*adjust_room)(struct __sk_buff *, __s32, __u32, __u64) = (void *)BPF_FUNC_skb_adjust_room;
static int (*grow_head)(struct __sk_buff *, __u32, __u64) = (void *)BPF_FUNC_skb_change_head;
static int (*redirect)(__u32, __u64) = (void *)BPF_FUNC_redirect;
static int (*redirect_to_neighbor)(__u32, void *, int, __u64) = (void *)BPF_FUNC_redirect_neigh;
static __u64 (*boot_time)(void) = (void *)BPF_FUNC_ktime_get_boot_ns;

enum {
	ETHERNET = 14,
	IPV6 = 40,
	PAYLOAD_LENGTH_AT = 4,
	NEXT_HEADER_AT = 6,
	SOURCE_AT = 8,
	DESTINATION_AT = 24,
	IDENTIFIER_AT = DESTINATION_AT + 8,
	TCP = 6,
	UDP = 17,
	ICMPV6 = 58,
	DESTINATION_OPTIONS = 60,
	// RFC 4861 section 4: these the kernel has to itself
	FIRST_OF_DISCOVERY = 133,
	LAST_OF_DISCOVERY = 137,
	// of a header with a nonce alone: 32 bits, or 96
	SHORT_OPTION = 8,
	LONG_OPTION = 16,
	INET6 = 10,       // AF_INET6
	TO_THIS_HOST = 0, // PACKET_HOST
	NEXT = -1,        // TCX_NEXT: whoever is there goes on with it
	DROP = 2,         // TCX_DROP
	ALL = -1,         // of a socket's filter: the whole packet
};

// RFC 9293 section 3.1
enum { FIN = 1, SYN = 2, RST = 4, FLAGS_AT = 13, TCP_LENGTH_AT = 12, TCP_CHECKSUM_AT = 16, UDP_CHECKSUM_AT = 6 };

struct address {
	__u64 words[2];
};

// Source and destination, as in a header.
struct pair {
	struct address source, destination;
};

// Where packets of a session go, either way. kernel/fast_path.rs writes it.
struct way {
	struct pair identities; // of a packet for applications
	struct pair wire_in;    // addresses, of the same on the wire
	struct pair wire_out;   // addresses, of a packet to the peer
	__u8 option[LONG_OPTION]; // in packets to the peer, but for the next header
	__u32 option_length;
	__u32 interface;
	__u32 device;
	__u32 path_mtu; // bytes of an IPv6 packet on the wire
	struct address next_hop; // on the link of the interface
};

// A session: what the agent reads is behind. Times are since the machine was started, in nanoseconds; bytes those of IPv6 packets.
struct session {
	struct way way;
	__u64 heard;
	__u64 first_sent; // since something was heard
	__u64 received, received_bytes, sent, sent_bytes;
};

// What shows that a packet is of a session.
struct wire_key {
	struct pair addresses;
	__u8 option[LONG_OPTION]; // but for the next header; zeros behind a short one
};

struct flow {
	struct address peer; // its identity
	__u32 protocol;
	__u16 local_port, remote_port;
};

// The packets of a flow that were left to the agent: others are not to overtake them.
struct queue {
	__u64 last, since; // of the last, or 0; and of the first behind which all went to the agent
};

// What is known of a flow. The agent writes it once, and reads how many packets were carried.
struct flow_state {
	__u64 carriage; // the number of its session
	__u64 packets;
	struct queue in, out;
};

// What `tap` has found out of the packet that `arrive` is going to see.
struct decision {
	__u64 carriage;
	__u32 protocol; // 0: nothing
	__u32 option_length;
};

// kernel/fast_path.rs writes and reads these byte by byte.
#define AT(kind, field, where) _Static_assert(__builtin_offsetof(struct kind, field) == (where), #kind "." #field)
AT(session, way.option, 96);
AT(session, way.option_length, 112);
AT(session, way.next_hop, 128);
AT(session, heard, 144);
AT(session, sent_bytes, 184);
AT(wire_key, option, 32);
AT(flow, protocol, 16);
AT(flow, remote_port, 22);
AT(flow_state, packets, 8);
_Static_assert(sizeof(struct flow_state) == 48, "flow_state");

#define MAP(name, kind, most, key_type, value_type)                                                                    \
	struct {                                                                                                       \
		int (*type)[kind];                                                                                     \
		int (*max_entries)[most];                                                                              \
		key_type *key;                                                                                         \
		value_type *value;                                                                                     \
	} name SECTION(".maps")

// Those that kernel/fast_path.rs fills. Sessions by their number.
MAP(sessions, BPF_MAP_TYPE_HASH, 256, __u64, struct session);
MAP(wire_keys, BPF_MAP_TYPE_HASH, 256, struct wire_key, __u64);
MAP(flows, BPF_MAP_TYPE_HASH, 4096, struct flow, struct flow_state);
// By the number of an interface or of the device: when the agent had nothing more to read there.
MAP(drained, BPF_MAP_TYPE_HASH, 64, __u32, __u64);
// This host's identifier, in network order; and how many packets were lost here, or taken by another program, of late.
enum { IDENTIFIER, LOST };
MAP(host, BPF_MAP_TYPE_ARRAY, 2, __u32, __u64);
MAP(decisions, BPF_MAP_TYPE_PERCPU_ARRAY, 1, __u32, struct decision);

// Nothing is carried that arrives, if so many were lost.
static const __u64 MOST_LOST = 16;

// What is sent goes by the agent if nothing has been heard for so long: it may have to find out whether anything gets through.
static const __s64 FRESH = 10 * 1000 * 1000;

// A flow whose packets wait for the agent without a pause overtakes them once it has gone by it for so long.
static const __s64 PATIENCE = 20 * 1000 * 1000;

INLINE int are_equal(const struct address *one, const struct address *other) {
	return one->words[0] == other->words[0] && one->words[1] == other->words[1];
}

// To the order of the network, or from it.
INLINE __u16 network16(__u16 value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(value);
#else
	return value;
#endif
}

INLINE int is_transport(__u8 protocol) {
	return protocol == TCP || protocol == UDP;
}

INLINE __u64 *host_value(__u32 which) {
	return map_lookup(&host, &which);
}

INLINE void count_lost(void) {
	__u64 *lost = host_value(LOST);
	if (lost)
		__sync_fetch_and_add(lost, 1);
}

// What is known of a flow whose transport's header begins at `at`, unless the packet begins or ends something: then the agent takes the
// flow back. Ports are source and destination.
INLINE struct flow_state *flow_of(struct __sk_buff *skb, __u32 at, struct flow *flow, int arrives) {
	__u16 ports[2];
	if (load_bytes(skb, at, ports, sizeof ports))
		return 0;
	if (flow->protocol == TCP) {
		__u8 flags;
		if (load_bytes(skb, at + FLAGS_AT, &flags, 1) || flags & (FIN | SYN | RST))
			return 0;
	}
	flow->local_port = ports[arrives ? 1 : 0];
	flow->remote_port = ports[arrives ? 0 : 1];
	return map_lookup(&flows, flow);
}

// Whether a packet of a flow waits for the agent, as far as the agent has said.
INLINE int waits(struct queue *queue, __u32 interface) {
	__u64 *empty = map_lookup(&drained, &interface);
	return queue->last && !(empty && *empty > queue->last);
}

// The agent is given a packet of a flow.
INLINE void leave_to_agent(struct queue *queue, __u32 interface, __u64 now) {
	if (!waits(queue, interface))
		queue->since = now;
	queue->last = now;
}

// Whether none of a flow's packets waits for the agent where the next comes from. If one does, the next is the agent's too.
INLINE int is_its_turn(struct queue *queue, __u32 interface, __u64 now) {
	if (waits(queue, interface) && (__s64)(now - queue->since) <= PATIENCE) {
		queue->last = now;
		return 0;
	}
	queue->last = 0;
	return 1;
}

// Whether a frame that has arrived is carried here. If so, `arrive` is told how.
INLINE int carries(struct __sk_buff *skb, struct decision *decision) {
	__u8 header[IPV6 + 2];
	struct wire_key key = {};
	struct flow flow = {};
	struct flow_state *state;
	struct session *session;
	__u64 *carriage, now;
	__u32 length;

	// a tag of a VLAN is not in the frame: another interface is to have it
	if (skb->pkt_type != TO_THIS_HOST || skb->vlan_present || load_bytes(skb, ETHERNET, header, sizeof header))
		return 0;
	if (header[NEXT_HEADER_AT] != DESTINATION_OPTIONS || header[IPV6 + 1] > 1 || !is_transport(header[IPV6]))
		return 0;
	__builtin_memcpy(&key.addresses, header + SOURCE_AT, sizeof key.addresses);
	if (header[IPV6 + 1]) {
		length = LONG_OPTION;
		if (load_bytes(skb, ETHERNET + IPV6, key.option, LONG_OPTION))
			return 0;
	} else {
		length = SHORT_OPTION;
		if (load_bytes(skb, ETHERNET + IPV6, key.option, SHORT_OPTION))
			return 0;
	}
	key.option[0] = 0;
	carriage = map_lookup(&wire_keys, &key);
	if (!carriage)
		return 0;
	session = map_lookup(&sessions, carriage);
	if (!session)
		return 0;
	flow.peer = session->way.identities.source;
	flow.protocol = header[IPV6];
	state = flow_of(skb, ETHERNET + IPV6 + length, &flow, 1);
	now = boot_time();
	if (!state || state->carriage != *carriage || !is_its_turn(&state->in, skb->ifindex, now))
		return 0;
	decision->carriage = *carriage;
	decision->protocol = flow.protocol;
	decision->option_length = length;
	session->heard = now;
	__sync_fetch_and_add(&state->packets, 1);
	__sync_fetch_and_add(&session->received, 1);
	__sync_fetch_and_add(&session->received_bytes, skb->len - ETHERNET);
	return 1;
}

SECTION("socket")
int tap(struct __sk_buff *skb) {
	__u32 first = 0;
	__u64 identifier, *mine = host_value(IDENTIFIER), *lost = host_value(LOST);
	struct decision *decision = map_lookup(&decisions, &first);
	__u16 type;
	__u8 next_header, message;
	if (!mine || !lost || !decision)
		return 0;
	// another program has taken the last one
	if (decision->protocol) {
		decision->protocol = 0;
		count_lost();
	}
	if (load_bytes(skb, ETHERNET - 2, &type, sizeof type) || type != network16(0x86dd))
		return 0;
	if (load_bytes(skb, ETHERNET + IDENTIFIER_AT, &identifier, sizeof identifier) || identifier != *mine)
		return 0;
	if (load_bytes(skb, ETHERNET + NEXT_HEADER_AT, &next_header, 1))
		return 0;
	if (next_header == ICMPV6 && !load_bytes(skb, ETHERNET + IPV6, &message, 1) && message >= FIRST_OF_DISCOVERY &&
	    message <= LAST_OF_DISCOVERY)
		return 0;
	return *lost < MOST_LOST && carries(skb, decision) ? 0 : ALL;
}

// Other addresses and another length for the packet whose IPv6 header is at `at`, and its transport's header at `transport`.
//
// Of a packet whose sum the hardware has taken (CHECKSUM_COMPLETE), replace_checksum subtracts the difference from that sum and
// store_bytes adds it: it stays as it is. BPF_F_IPV6, which is for those who store without BPF_F_RECOMPUTE_CSUM, would spoil it.
INLINE int readdress(struct __sk_buff *skb, __u32 at, __u32 transport, __u8 protocol, struct pair *old, struct pair *new,
		     __u8 next_header, int grows_by) {
	__u32 field = transport + (protocol == TCP ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT);
	__u64 zero_is_none = protocol == UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__s64 change = difference(old, sizeof *old, new, sizeof *new, 0);
	__u16 length;
	if (change < 0 || load_bytes(skb, at + PAYLOAD_LENGTH_AT, &length, sizeof length))
		return 1;
	length = network16(network16(length) + grows_by);
	return replace_checksum(skb, field, 0, change, BPF_F_PSEUDO_HDR | zero_is_none) ||
	       store_bytes(skb, at + SOURCE_AT, new, sizeof *new, BPF_F_RECOMPUTE_CSUM) ||
	       store_bytes(skb, at + PAYLOAD_LENGTH_AT, &length, sizeof length, BPF_F_RECOMPUTE_CSUM) ||
	       store_bytes(skb, at + NEXT_HEADER_AT, &next_header, 1, BPF_F_RECOMPUTE_CSUM);
}

INLINE int lose(void) {
	count_lost();
	return DROP;
}

SECTION("classifier/arrive")
int arrive(struct __sk_buff *skb) {
	__u32 first = 0, protocol;
	__s32 length;
	struct pair addresses;
	struct session *session;
	struct decision *decision = map_lookup(&decisions, &first);
	if (!decision || !decision->protocol)
		return NEXT;
	protocol = decision->protocol;
	decision->protocol = 0;
	session = map_lookup(&sessions, &decision->carriage);
	// it is the packet that `tap` has just seen: what receives packets on a processor is not interrupted by its like
	if (!session || load_bytes(skb, ETHERNET + SOURCE_AT, &addresses, sizeof addresses) ||
	    !are_equal(&addresses.source, &session->way.wire_in.source) ||
	    !are_equal(&addresses.destination, &session->way.wire_in.destination)) {
		count_lost();
		return NEXT;
	}
	length = decision->option_length == LONG_OPTION ? LONG_OPTION : SHORT_OPTION;
	// the first is not done with every kind of super-packet
	if (adjust_room(skb, -length, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET) ||
	    readdress(skb, ETHERNET, ETHERNET + IPV6, protocol, &addresses, &session->way.identities, protocol, -length))
		return lose();
	return redirect(session->way.device, BPF_F_INGRESS);
}

// Of a super-packet, how long its segments are.
INLINE __u32 longest_of(struct __sk_buff *skb, __u8 protocol) {
	__u8 transport_length = 8;
	if (!skb->gso_size)
		return skb->len;
	if (protocol == TCP) {
		if (load_bytes(skb, IPV6 + TCP_LENGTH_AT, &transport_length, 1))
			return skb->len;
		transport_length = (transport_length >> 4) * 4;
	}
	return IPV6 + transport_length + skb->gso_size;
}

SECTION("classifier/leave")
int leave(struct __sk_buff *skb) {
	__u8 header[IPV6];
	struct flow flow = {};
	struct pair identities;
	struct flow_state *state;
	struct session *session;
	struct bpf_redir_neigh next_hop = {.nh_family = INET6};
	__u32 length;
	__u64 now;
	__u8 protocol;

	if (load_bytes(skb, 0, header, sizeof header))
		return NEXT;
	protocol = header[NEXT_HEADER_AT];
	if (!is_transport(protocol))
		return NEXT;
	__builtin_memcpy(&identities, header + SOURCE_AT, sizeof identities);
	flow.peer = identities.destination;
	flow.protocol = protocol;
	state = flow_of(skb, IPV6, &flow, 0);
	if (!state)
		return NEXT;
	session = map_lookup(&sessions, &state->carriage);
	// both: a flow that is taken back just now may be another's already
	if (!session || !are_equal(&identities.source, &session->way.identities.destination) ||
	    !are_equal(&identities.destination, &session->way.identities.source))
		return NEXT;
	now = boot_time();
	length = session->way.option_length == LONG_OPTION ? LONG_OPTION : SHORT_OPTION;
	if ((__s64)(now - session->heard) > FRESH || longest_of(skb, protocol) + length > session->way.path_mtu ||
	    skb->len + length > 0xffff) {
		leave_to_agent(&state->out, session->way.device, now);
		return NEXT;
	}
	if (!is_its_turn(&state->out, session->way.device, now))
		return NEXT;
	// not with every kind of super-packet: then the agent cuts it up
	if (adjust_room(skb, length, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET)) {
		leave_to_agent(&state->out, session->way.device, now);
		return NEXT;
	}
	if (length == LONG_OPTION ? store_bytes(skb, IPV6, session->way.option, LONG_OPTION, 0)
				  : store_bytes(skb, IPV6, session->way.option, SHORT_OPTION, 0))
		return lose();
	if (store_bytes(skb, IPV6, &protocol, 1, 0) ||
	    readdress(skb, 0, IPV6 + length, protocol, &identities, &session->way.wire_out, DESTINATION_OPTIONS, length))
		return lose();
	if ((__s64)(session->first_sent - session->heard) <= 0)
		session->first_sent = now;
	__sync_fetch_and_add(&state->packets, 1);
	__sync_fetch_and_add(&session->sent, 1);
	__sync_fetch_and_add(&session->sent_bytes, skb->len);
	// the kernel takes a frame there, and puts the addresses in
	if (grow_head(skb, ETHERNET, 0))
		return lose();
	__builtin_memcpy(next_hop.ipv6_nh, &session->way.next_hop, sizeof next_hop.ipv6_nh);
	return redirect_to_neighbor(session->way.interface, &next_hop, sizeof next_hop, 0);
}

// No helper is called that the kernel keeps for programs under the GPL.
char LICENSE[] SECTION("license") = "MIT";
