#!/usr/bin/env bash
# Run two commands side by side: `beside.sh COMMAND COMMAND`. The first one writes as it goes, the other's words follow when it is
# over. Where one fails the other is stopped, and its status is that of both.
set -uo pipefail

said=$(mktemp)
trap 'rm -f "$said"' EXIT

# Groups of their own, so that all that they have started can be stopped.
set -m
bash -c "$1" &
first=$!
bash -c "$2" >"$said" 2>&1 &
second=$!
set +m

stop() {
    kill -- -"$first" -"$second" 2>/dev/null
    wait
}
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM

running=("$first" "$second")
while [ "${#running[@]}" -gt 0 ]; do
    status=0
    wait -n -p ended "${running[@]}" || status=$?
    left=()
    for one in "${running[@]}"; do
        [ "$one" = "$ended" ] || left+=("$one")
    done
    running=("${left[@]}")
    if [ "$ended" = "$second" ]; then
        printf '%s\n' "beside it: $2"
        cat "$said"
    fi
    if [ "$status" -ne 0 ]; then
        stop
        exit "$status"
    fi
done
