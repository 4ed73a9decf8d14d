# The bulk SCTP scenario of `make bench`, for ns-2 2.35. The same network as scenarios/bench/bulk.toml:
#
#   source --- router --- router --- sink      three duplex links, 100 Mbit/s and 5 ms each
#
# One association, 60 simulated seconds, no trace. 1500-byte packets: 40 bytes of IPv6 header, 12 of SCTP header, and
# one DATA chunk of 1448 (16 of header, 1432 of user data). The receiver's window holds a little more than the pipe
# does (100 Mbit/s x 30 ms = 375,000 bytes) and the queues are deep enough that nothing is lost: what is compared is
# the speed of two simulators at the same work, not two recoveries from loss.
#
#   ns bulk_sctp.tcl                    run and print nothing
#   ns bulk_sctp.tcl count              the same run with counters on the links; print packets and bytes
#   ns bulk_sctp.tcl run Calendar       another scheduler
#
# Counters cost ns-2 time, so the timed runs go without them; the seed is fixed and there is no randomness but the
# heartbeat jitter, so both runs send the same packets. The scheduler is the one that ns-2 is fastest with here (its
# default, Calendar, takes about a tenth longer), and the window is no larger than needed, because ns-2 walks
# its list of unacknowledged chunks at every SACK: both choices are in favour of ns-2.

set rate        100Mb
set delay       5ms
set duration    60.0
set queue_limit 1000        ;# packets, DropTail
set window      393216      ;# bytes
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

set source [new Agent/SCTP]
set sink   [new Agent/SCTP]
foreach agent [list $source $sink] {
    $agent set mtu_ 1500
    $agent set ipHeaderSize_ 40
    $agent set dataChunkSize_ 1448
    $agent set initialRwnd_ $window
    $agent set initialSsthresh_ $window
    $agent set useDelayedSacks_ 1
    $agent set sackDelay_ 0.200
}
$ns attach-agent [lindex $hosts 0] $source
$ns attach-agent [lindex $hosts 3] $sink
$ns connect $source $sink

set ftp [new Application/FTP]
$ftp attach-agent $source

proc finish {} {
    global counting forward backward duration
    if {$counting} {
        set hops 0
        set drops 0
        foreach i {0 1 2} {
            incr hops  [$forward($i) set pdepartures_]
            incr hops  [$backward($i) set pdepartures_]
            incr drops [$forward($i) set pdrops_]
            incr drops [$backward($i) set pdrops_]
        }
        # A packet that left the last link's queue is delivered, but for the few within one link delay of the end.
        # Whatever is not a full-sized packet there is a control chunk of the set-up or a heartbeat.
        set packets [$forward(2) set pdepartures_]
        set bytes   [$forward(2) set bdepartures_]
        set data    [expr {int($bytes / 1500)}]
        puts "simulated_s $duration"
        puts "packet_hops $hops"
        puts "drops $drops"
        puts "last_link_packets $packets"
        puts "delivered_bytes [expr {$data * 1432}]"
    }
    exit 0
}

$ns at 0.0 "$ftp start"
$ns at $duration "finish"
$ns run
