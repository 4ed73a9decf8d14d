# Bulk TCP over one lossy link in ns-2, with the congestion control of the Linux kernel (Agent/TCP/Linux): 10 Mbit/s, 20 ms
# each way, independent loss of packets in both directions.
#
#   ns lossy_tcp.tcl ALGORITHM LOSS SEED DURATION     prints the goodput, bit/s

lassign $argv algorithm loss seed duration

set ns [new Simulator]
ns-random $seed
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b 10Mb 20ms DropTail
$ns queue-limit $a $b 50
$ns queue-limit $b $a 1000

foreach {from to} [list $a $b $b $a] {
    set model [new ErrorModel]
    $model set rate_ $loss
    $model unit pkt
    $model ranvar [new RandomVariable/Uniform]
    $model drop-target [new Agent/Null]
    $ns lossmodel $model $from $to
}

# 1500 bytes on the link: 1428 of data, 72 of headers with timestamps, as over IPv6; ns-2 adds 50 of headers itself
set sender [new Agent/TCP/Linux]
$sender set timestamps_ true
$sender set windowOption_ 8
$sender set window_ 2000
$sender set packetSize_ 1450
$sender set minrto_ 0.2
$sender set rtxcur_init_ 1.0
$ns at 0 "$sender select_ca $algorithm"
# byte counting is on by default here, but only Reno heeds it: every algorithm counts acknowledgements, as in Linux, where
# it was off until 3.9 did away with it
$ns at 0 "$sender set_ca_default_param linux sysctl_tcp_abc 0"
set receiver [new Agent/TCPSink/Sack1/DelAck]
$receiver set ts_echo_rfc1323_ true
$receiver set interval_ 0.04
$ns attach-agent $a $sender
$ns attach-agent $b $receiver
$ns connect $sender $receiver
set ftp [new Application/FTP]
$ftp attach-agent $sender

proc finish {} {
    global sender duration
    puts "goodput_bps [expr {[$sender set ack_] * 1428.0 * 8 / $duration}]"
    puts "timeouts [$sender set nrexmit_]"
    exit 0
}
$ns at 0 "$ftp start"
$ns at $duration finish
$ns run
