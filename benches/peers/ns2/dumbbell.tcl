# The dumbbells of `make bench`, for ns-2 2.35. The same network as scenarios/bench/dumbbell-sctp.toml and dumbbell-tcp.toml:
#
#   sources --- left === right --- sinks       twenty of each; === is the bottleneck, 100 Mbit/s and 10 ms
#
# It loses one packet in 2,000 in each direction, at random; four senders of UDP cross it. Packets, windows and delays of
# acknowledgements are those of bulk_sctp.tcl and bulk_tcp.tcl. 60 simulated seconds, no trace.
#
#   ns dumbbell.tcl sctp                    run and print nothing
#   ns dumbbell.tcl tcp count               the same run with counters on the links; print packets and bytes
#   ns dumbbell.tcl tcp run Calendar        another scheduler
#
# Counters cost ns-2 time, so the timed runs go without them. What is random has a fixed seed, so both runs send the same
# packets.

set transport   [lindex $argv 0]
set mode        [expr {[llength $argv] > 1 ? [lindex $argv 1] : "run"}]
set scheduler   [expr {[llength $argv] > 2 ? [lindex $argv 2] : "Splay"}]
set counting    [expr {$mode eq "count"}]
set duration    60.0
set flows       20
set crossing    4
set loss        0.0005

set ns [new Simulator]
$ns use-scheduler $scheduler
ns-random 1

set monitors {}
# A duplex link of 100 Mbit/s unless said otherwise, counted if asked.
proc link {a b delay {rate 100Mb} {limit 1000}} {
    global ns counting monitors
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a $limit
    if {$counting} {
        lappend monitors [$ns monitor-queue $a $b ""] [$ns monitor-queue $b $a ""]
    }
}

proc sctp {source sink} {
    global ns
    set agents [list [new Agent/SCTP] [new Agent/SCTP]]
    foreach agent $agents {
        $agent set mtu_ 1500
        $agent set ipHeaderSize_ 40
        $agent set dataChunkSize_ 1448
        $agent set initialRwnd_ 393216
        $agent set initialSsthresh_ 393216
        $agent set useDelayedSacks_ 1
        $agent set sackDelay_ 0.200
    }
    connect_agents $agents $source $sink
}

proc tcp {source sink} {
    global ns
    set sender [new Agent/TCP/Linux]
    $sender set timestamps_ true
    $sender set window_ 2200
    $sender set minrto_ 0.2
    # what the headers that ns-2 knows of do not fill of 1500 bytes
    $sender set packetSize_ 1450
    $ns at 0.0 "$sender select_ca cubic"
    set receiver [new Agent/TCPSink/Sack1/DelAck]
    $receiver set ts_echo_rfc1323_ true
    $receiver set interval_ 0.04
    connect_agents [list $sender $receiver] $source $sink
}

# Connects the two; the agent that sends.
proc connect_agents {agents source sink} {
    global ns
    lassign $agents sender receiver
    $ns attach-agent $source $sender
    $ns attach-agent $sink $receiver
    $ns connect $sender $receiver
    return $sender
}

set left  [$ns node]
set right [$ns node]
link $left $right 10ms 100Mb 250
foreach {a b} [list $left $right $right $left] {
    set errors [new ErrorModel]
    $errors set rate_ $loss
    $errors unit pkt
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $a $b
}

set arriving {}
set crossed {}
for {set i 0} {$i < $flows} {incr i} {
    set source [$ns node]
    set sink [$ns node]
    link $source $left [expr {1 + $i % 10}]ms
    link $right $sink [expr {1 + $i / 10}]ms
    if {$counting} { lappend arriving [lindex $monitors end-1] }
    set ftp [new Application/FTP]
    $ftp attach-agent [$transport $source $sink]
    $ns at [expr {$i * 0.1}] "$ftp start"
}

for {set i 0} {$i < $crossing} {incr i} {
    set source [$ns node]
    set sink [$ns node]
    link $source $left [expr {1 + $i}]ms 10Mb
    link $right $sink 1ms 10Mb
    if {$counting} { lappend crossed [lindex $monitors end-1] }
    set udp [new Agent/UDP]
    $udp set packetSize_ 1048
    connect_agents [list $udp [new Agent/Null]] $source $sink
    set sender [new Application/Traffic/CBR]
    $sender attach-agent $udp
    $sender set packetSize_ 1048
    $sender set interval_ 0.0032
    $ns at [expr {$i * 0.007}] "$sender start"
}

# What a full packet carries to the application: of 1500 bytes in SCTP; of 1500 bytes in TCP too, which ns-2 adds its own
# headers to.
array set payload {sctp 1432 tcp 1428}

proc finish {} {
    global counting monitors arriving crossed duration transport payload
    if {$counting} {
        set hops 0
        set drops 0
        foreach monitor $monitors {
            incr hops  [$monitor set pdepartures_]
            incr drops [$monitor set pdrops_]
        }
        # What left the queue of a sink's link is delivered, but for what is sent twice.
        set full 0
        foreach monitor $arriving {
            incr full [expr {int([$monitor set bdepartures_] / 1500)}]
        }
        set bytes [expr {$full * $payload($transport)}]
        foreach monitor $crossed {
            incr bytes [expr {[$monitor set pdepartures_] * 1000}]
        }
        puts "simulated_s $duration"
        puts "packet_hops $hops"
        puts "drops $drops"
        puts "delivered_bytes $bytes"
    }
    exit 0
}

$ns at $duration "finish"
$ns run
