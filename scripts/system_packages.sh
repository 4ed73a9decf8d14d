#!/usr/bin/env bash
# Install the system packages that tests use, where this may be done: as root, with apt-get. Elsewhere, and where the
# installation fails, say what will be skipped; the tests print the same reason where they skip.
set -uo pipefail

# command, Debian package, what is not tested without it
needed=(
    "tshark|tshark|captures are not checked with tshark"
    "named|bind9|the location manager is not tested with BIND"
    "nsupdate|bind9-dnsutils|the location manager is not tested with BIND's nsupdate and dig"
    "ns|ns2|goodput under loss is not compared with ns-2"
)

missing=()
for entry in "${needed[@]}"; do
    IFS='|' read -r command _ _ <<<"$entry"
    command -v "$command" >/dev/null || missing+=("$entry")
done
[ ${#missing[@]} -eq 0 ] && exit 0

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
    command -v "$command" >/dev/null ||
        echo "SKIPPED: $command is missing, so $lost (as root on Debian: apt-get install $package)"
done
exit 0
