$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$ns_ at 2.0 "$node_(0) setdest 70.0 0.0 5.0"
