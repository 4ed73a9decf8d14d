# How ns-2's SCTP opens the window of a new path after its primary path is changed: a fact about the simulator that
# the SIGMA paper used, beside claim S4 (window of 3 MTU on the new path, then 6).
#
#   ns path_switch.tcl 1        receiver delays its SACKs (ns-2's default)
#   ns path_switch.tcl 0        a SACK per packet
#
# Two hosts, two disjoint paths of 10 Mbit/s and 50 ms, no queue builds up, nothing is lost. The primary path changes
# at 3 s. Printed at the start and at every change until 3.4 s: time (s), cwnd and ssthresh of the new path (bytes), and
# cwnd in packets of 1468.
#
# With a SACK per packet ns-2 2.35 gives 4380 bytes (3 packets of 1468, the last passing the window as the RFC allows)
# and 6 packets in the next round trip; initialCwnd_ has no effect on the 4380. Credit goes to the destination that the
# acknowledged chunks were sent to, whatever path the SACK came over.

set delayed_sacks [expr {[llength $argv] > 0 ? [lindex $argv 0] : 1}]
set trace_file "/tmp/path_switch.[pid].trace"

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

foreach {sender sender_1 sender_2} [multihomed_host] break
foreach {receiver receiver_1 receiver_2} [multihomed_host] break
$ns duplex-link $sender_1 $receiver_1 10Mb 50ms DropTail
$ns duplex-link $sender_2 $receiver_2 10Mb 50ms DropTail

set source [new Agent/SCTP]
set sink   [new Agent/SCTP]
$ns multihome-attach-agent $sender $source
$ns multihome-attach-agent $receiver $sink
$sink set useDelayedSacks_ $delayed_sacks

set trace [open $trace_file w]
fconfigure $trace -translation binary
$source set trace_all_ 1
$source trace cwnd_
$source attach $trace

$ns connect $source $sink
set ftp [new Application/FTP]
$ftp attach-agent $source
$source set-primary-destination $receiver_1

proc finish {} {
    global trace trace_file receiver_2
    close $trace
    set trace [open $trace_file r]
    fconfigure $trace -translation binary
    set text [read $trace]
    close $trace
    file delete $trace_file
    # ns-2 writes stray bytes between its lines; the fields that are wanted identify themselves.
    set pattern {time: ([0-9.]+) +saddr: \d+ +sport: \d+ +daddr: (\d+) +dport: \d+ +cwnd: (\d+) pba: \d+ out: \d+ ssthresh: (\d+)}
    set last ""
    foreach {- time address cwnd ssthresh} [regexp -all -inline $pattern $text] {
        if {$address == [$receiver_2 id] && $cwnd ne $last} {
            puts [format "%.5f cwnd %6d ssthresh %6d %5.2f packets" $time $cwnd $ssthresh [expr {$cwnd / 1468.0}]]
            set last $cwnd
        }
    }
    exit 0
}

$ns at 0.0 "$ftp start"
$ns at 3.0 "$source set-primary-destination $receiver_2"
$ns at 3.4 "finish"
$ns run
