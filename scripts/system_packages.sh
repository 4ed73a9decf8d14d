#!/usr/bin/env bash
# Install the system packages that tests use, where this may be done: as root, with apt-get. Elsewhere, and where the
# installation fails, say what will be skipped; the tests print the same reason where they skip.
set -uo pipefail
cd "$(dirname "$0")/.."

# command or file, Debian package, what is not tested without it
needed=(
    "tshark|tshark|captures are not checked with tshark"
    "named|bind9|neither the location manager nor names of the agent are tested with BIND"
    "nsupdate|bind9-dnsutils|neither the location manager nor names of the agent are tested with BIND's nsupdate and dig"
    "ns|ns2|goodput under loss is not compared with ns-2"
    "ip|iproute2|nothing is tested between network namespaces"
    "iperf3|iperf3|ILNP is not tested under the kernel's TCP"
    "dumpcap|wireshark-common|nothing is captured between network namespaces for segue analyze"
    "wireguard-go|wireguard-go|no WireGuard peer roams"
    "wg|wireguard-tools|no WireGuard peer roams"
    "ethtool|ethtool|the agent's fast path is not tested with checksums that machines make by themselves"
    "nft|nftables|the agent is not tested on machines with a firewall"
    "/usr/sbin/sshd|openssh-server|no ssh session goes through the agent's handovers"
    "systemd-nspawn|systemd-container|neither the agent's Debian package nor its unit is tested on machines with systemd"
    "lintian|lintian|the agent's Debian package is not checked with lintian"
    "man|man-db|the agent's manual page is not looked at"
    "clang|clang|the agent is built without its fast path"
    "radvd|radvd|ILNP is not tested under the kernel's TCP"
    "/usr/include/usrsctp.h|libusrsctp-dev|SCTP is not tested against usrsctp"
    "qemu-system-x86_64|qemu-system-x86|SCTP is not tested against the Linux kernel"
)

is_there() {
    [ -e "$1" ] || command -v "$1" >/dev/null
}

# The kernel that is booted under qemu, unpacked into a cache. What it prints says why there is none.
fetch_kernel() {
    command -v qemu-system-x86_64 >/dev/null || return 0
    scripts/linux_kernel.sh || echo "SKIPPED: SCTP is not tested against the Linux kernel"
}

missing=()
for entry in "${needed[@]}"; do
    IFS='|' read -r command _ _ <<<"$entry"
    is_there "$command" || missing+=("$entry")
done
if [ ${#missing[@]} -eq 0 ]; then
    fetch_kernel
    exit 0
fi

packages=()
for entry in "${missing[@]}"; do
    IFS='|' read -r _ package _ <<<"$entry"
    packages+=("$package")
done

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "${packages[@]}"
}

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${packages[*]}"
    # The package lists of a fresh machine are empty or old: fetch them only if the first attempt shows it.
    install || { apt-get update --quiet && install; }
fi

for entry in "${missing[@]}"; do
    IFS='|' read -r command package lost <<<"$entry"
    is_there "$command" ||
        echo "SKIPPED: $command is missing, so $lost (as root on Debian: apt-get install $package)"
done
fetch_kernel
exit 0
