# A concurrent multipath transfer over two paths that stay, by the SCTP/CMT agent of ns-2 2.35 (University of Delaware's
# own): what an implementation that nobody here wrote makes of the network of scenarios/papers/cmt.toml.
#
#   sender --- router 1 --- receiver    100 Mbit/s and 5 ms, then RATIO x 384 kbit/s and 15 ms
#          \-- router 2 --/             100 Mbit/s and 5 ms, then 384 kbit/s and 80 ms
#
#   ns cmt.tcl RATIO RBUF QUEUE BEGIN END [SLOW_DELAY [FAST_DELAY [MAX_BURST [RTO_MIN]]]]
#
# Receive buffer in bytes, queues in packets, begin and end in seconds, delays of the two access links in ms; MAX_BURST 1
# or 0, with or without.
#
# Prints the goodput between the two times (bit/s, every chunk counted once), the share that it has of both links' rates
# less the headers, and what each path carried and lost.
#
# What one must know of the agent:
# - it hangs at the start unless the receiver has heartbeatInterval_ 0, so that only the sender sends heartbeats;
# - one association per process: its state is partly global;
# - it sends nothing before every destination is confirmed, which takes a heartbeat to each;
# - dataChunkSize_ includes the 16 bytes of the chunk's header: 1468 is 1452 of user data;
# - with minRto_ 50 ms and sackDelay_ 200 ms its timers expire without any loss;
# - its receiver sorts stream sequence numbers, of 16 bit, as numbers: where chunks are out of order when they begin
#   again, after 65536 of them, nothing is delivered any more, and the window closes for good;
# - Max.Burst, for each destination, is applied from the first acknowledged retransmission on, never before.

if {[llength $argv] < 5} {
    puts stderr "usage: ns cmt.tcl RATIO RBUF QUEUE BEGIN END ?SLOW_DELAY? ?FAST_DELAY? ?MAX_BURST? ?RTO_MIN?"
    exit 2
}
lassign $argv ratio rbuf queue begin end slow_delay fast_delay max_burst rto_min
if {$slow_delay eq ""} { set slow_delay 80 }
if {$fast_delay eq ""} { set fast_delay 15 }
if {$max_burst eq ""} { set max_burst 1 }
if {$rto_min eq ""} { set rto_min 0.05 }
set chunk_size 1468
set user_data  [expr {$chunk_size - 16}]
set packet     [expr {$chunk_size + 12 + 20}]
set rates      [list [expr {$ratio * 384.0}] 384.0]     ;# kbit/s
set delays     [list $fast_delay $slow_delay]           ;# ms
set trace_file "/tmp/cmt.[pid].trace"

set ns [new Simulator]
ns-random 1

# A multihomed host of ns-2 is a core node with an interface node for each address.
proc multihomed_host {} {
    global ns
    set core [$ns node]
    set first [$ns node]
    set second [$ns node]
    $ns multihome-add-interface $core $first
    $ns multihome-add-interface $core $second
    return [list $core $first $second]
}

set trace [open $trace_file w]
set sender   [multihomed_host]
set receiver [multihomed_host]
foreach path {1 2} rate $rates delay $delays {
    set router [$ns node]
    set near [lindex $sender $path]
    set far [lindex $receiver $path]
    $ns duplex-link $near $router 100Mb 5ms DropTail
    $ns duplex-link $router $far ${rate}kb ${delay}ms DropTail
    $ns queue-limit $near $router 10000
    $ns queue-limit $router $far $queue
    $ns queue-limit $far $router 10000
    set monitor($path) [$ns monitor-queue $router $far ""]
    $ns trace-queue $router $far $trace
}

set source [new Agent/SCTP/CMT]
set sink   [new Agent/SCTP/CMT]
$ns multihome-attach-agent [lindex $sender 0] $source
$ns multihome-attach-agent [lindex $receiver 0] $sink
foreach agent [list $source $sink] {
    $agent set mtu_ 1500
    $agent set ipHeaderSize_ 20
    $agent set dataChunkSize_ $chunk_size
    $agent set numOutStreams_ 1
    $agent set initialRwnd_ $rbuf
    $agent set initialSsthresh_ $rbuf
    $agent set minRto_ $rto_min
    $agent set pathMaxRetrans_ 5
    $agent set useDelayedSacks_ 1
    $agent set sackDelay_ 0.200
    $agent set useCmtReordering_ 1      ;# SFR
    $agent set useCmtCwnd_ 1            ;# CUC
    $agent set useCmtDelAck_ 1          ;# DAC
    $agent set useCmtPF_ 1
    $agent set useMaxBurst_ $max_burst
    $agent set eCmtRtxPolicy_ 4         ;# RTX-CWND
}
$sink set heartbeatInterval_ 0

$ns connect $source $sink
set ftp [new Application/FTP]
$ftp attach-agent $source
$source set-primary-destination [lindex $receiver 1]

# A line of the trace: event, time, from, to, type, size, flags, flow, source, destination, stream, TSN, ...; r is an
# arrival at the end of the link, and D among the flags is a DATA chunk.
proc finish {} {
    global ns trace trace_file begin end user_data packet rates monitor source
    $ns flush-trace
    close $trace
    set trace [open $trace_file r]
    set chunks 0
    while {[gets $trace line] >= 0} {
        if {[string index $line 0] ne "r"} continue
        set tsn [lindex $line 11]
        if {[lindex $line 4] ne "sctp" || [lindex $line 5] < 1000 || [info exists seen($tsn)]} continue
        set seen($tsn) 1
        if {[lindex $line 1] >= $begin} { incr chunks }
    }
    close $trace
    file delete $trace_file
    set goodput [expr {8.0 * $chunks * $user_data / ($end - $begin)}]
    set possible [expr {1000.0 * ([lindex $rates 0] + [lindex $rates 1]) * $user_data / $packet}]
    puts "goodput_bps [format %.0f $goodput]"
    puts "share [format %.4f [expr {$goodput / $possible}]]"
    foreach path {1 2} {
        puts "bytes_path_$path [$monitor($path) set bdepartures_]"
        puts "drops_path_$path [$monitor($path) set pdrops_]"
    }
    puts "timeouts [$source set timeoutCount_]"
    exit 0
}

$ns at 0 "$ftp start"
$ns at $end finish
$ns run
