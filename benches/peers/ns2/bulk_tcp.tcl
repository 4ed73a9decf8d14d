# The bulk TCP scenario of `make bench`, for ns-2 2.35. The same network as scenarios/bench/tcp.toml:
#
#   source --- router --- router --- sink      three duplex links, 100 Mbit/s and 5 ms each
#
# One connection of TCP/Linux with CUBIC, 60 simulated seconds, no trace. 1500-byte packets: 1428 of data and 72 of
# headers. Queues of 1000 packets and a window that is not the limit: CUBIC fills the first queue and loses packets now
# and then, so that recovery is part of the work.
#
#   ns bulk_tcp.tcl                    run and print nothing
#   ns bulk_tcp.tcl count              the same run with counters on the links; print packets and bytes
#   ns bulk_tcp.tcl run Calendar       another scheduler
#
# Counters cost ns-2 time, so the timed runs go without them; nothing is random, so both runs send the same packets.

set rate        100Mb
set delay       5ms
set duration    60.0
set queue_limit 1000        ;# packets, DropTail
set window      2200        ;# packets: 3 MiB
set mode        [expr {[llength $argv] > 0 ? [lindex $argv 0] : "run"}]
set scheduler   [expr {[llength $argv] > 1 ? [lindex $argv 1] : "Splay"}]
set counting    [expr {$mode eq "count"}]

set ns [new Simulator]
$ns use-scheduler $scheduler
ns-random 1

set hosts {}
foreach i {0 1 2 3} { lappend hosts [$ns node] }
foreach i {0 1 2} {
    set a [lindex $hosts $i]
    set b [lindex $hosts [expr {$i + 1}]]
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b $queue_limit
    $ns queue-limit $b $a $queue_limit
    if {$counting} {
        set forward($i)  [$ns monitor-queue $a $b ""]
        set backward($i) [$ns monitor-queue $b $a ""]
    }
}

set source [new Agent/TCP/Linux]
$source set timestamps_ true
$source set window_ $window
$source set minrto_ 0.2
# what the headers that ns-2 knows of do not fill of 1500 bytes
$source set packetSize_ 1450
$ns at 0.0 "$source select_ca cubic"
set sink [new Agent/TCPSink/Sack1/DelAck]
$sink set ts_echo_rfc1323_ true
$sink set interval_ 0.04
$ns attach-agent [lindex $hosts 0] $source
$ns attach-agent [lindex $hosts 3] $sink
$ns connect $source $sink

set ftp [new Application/FTP]
$ftp attach-agent $source

proc finish {} {
    global counting forward backward duration source
    if {$counting} {
        set hops 0
        set drops 0
        foreach i {0 1 2} {
            incr hops  [$forward($i) set pdepartures_]
            incr hops  [$backward($i) set pdepartures_]
            incr drops [$forward($i) set pdrops_]
            incr drops [$backward($i) set pdrops_]
        }
        set packets [$forward(2) set pdepartures_]
        puts "simulated_s $duration"
        puts "packet_hops $hops"
        puts "drops $drops"
        puts "packet_size [expr {[$forward(2) set bdepartures_] / $packets}]"
        # acknowledged in order; the rest is under way
        puts "delivered_bytes [expr {([$source set ack_] + 1) * 1428}]"
    }
    exit 0
}

$ns at 0.0 "$ftp start"
$ns at $duration "finish"
$ns run
