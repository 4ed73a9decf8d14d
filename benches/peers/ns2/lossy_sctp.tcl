# Bulk SCTP over one lossy link in ns-2: 10 Mbit/s, 20 ms each way, independent loss of data packets.
#
#   ns lossy_sctp.tcl LOSS SEED DURATION     prints the goodput, bit/s

lassign $argv loss seed duration

set ns [new Simulator]
ns-random $seed
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 10Mb 20ms DropTail
$ns queue-limit $a $b 1000
$ns queue-limit $b $a 1000

set model [new ErrorModel]
$model set rate_ $loss
$model unit pkt
$model ranvar [new RandomVariable/Uniform]
$model drop-target [new Agent/Null]
$ns lossmodel $model $a $b
set forward [$ns monitor-queue $a $b ""]

set sender   [new Agent/SCTP]
set receiver [new Agent/SCTP]
foreach agent [list $sender $receiver] {
    $agent set mtu_ 1500
    $agent set ipHeaderSize_ 40
    $agent set dataChunkSize_ 1448
    $agent set initialRwnd_ 1048576
    $agent set initialSsthresh_ 1048576
    $agent set useDelayedSacks_ 1
    $agent set sackDelay_ 0.200
    $agent set minRto_ 1.0
}
$ns attach-agent $a $sender
$ns attach-agent $b $receiver
$ns connect $sender $receiver
set ftp [new Application/FTP]
$ftp attach-agent $sender

# What leaves the sender less what is lost: data and its retransmissions, each useful once.
proc finish {} {
    global forward duration loss
    set packets [expr {[$forward set bdepartures_] / 1500.0 * (1 - $loss)}]
    puts [expr {$packets * 1432 * 8 / $duration}]
    exit 0
}
$ns at 0 "$ftp start"
$ns at $duration finish
$ns run
