#!/usr/bin/env bash
# Fetch Debian's kernel for the emulated machine of tests/interop: unpacked into the cache, not installed. Of the
# package only the kernel and the modules named below with what they depend on are kept, in a directory per version:
#
#   ${XDG_CACHE_HOME:-~/.cache}/segue/linux/VERSION/{vmlinuz,modules,*.ko}
#
# `modules` lists the modules in the order in which they have to be loaded. Does nothing if the current version is
# there already. Fails with one line that says why.
set -euo pipefail

# crc32c_generic before sctp, which asks for the algorithm by name.
wanted=(virtio_pci virtio_console virtio_net crc32c_generic sctp)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/segue/linux

fail() {
    echo "no Linux kernel to test against: $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "only for x86_64"
for command in apt-get apt-cache dpkg-deb; do
    command -v "$command" >/dev/null || fail "$command is missing"
done

current_package() {
    apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1
}

package=$(current_package)
if [ -z "$package" ] && [ "$(id -u)" -eq 0 ]; then
    apt-get update --quiet >/dev/null 2>&1 || true
    package=$(current_package)
fi
[ -n "$package" ] || fail "apt-cache knows no package linux-image-amd64 (apt-get update as root)"
version=$(apt-cache show "$package" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
[ -n "$version" ] || fail "apt-cache knows no version of $package"
directory=$cache/$version
[ -e "$directory/modules" ] && exit 0

echo "Fetching $package $version"
mkdir -p "$cache"
# Beside its final place, so that moving it there is one step and a run that is stopped leaves nothing half done.
work=$(mktemp --directory "$cache/partial.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download --quiet "$package" >download.log 2>&1) || fail "apt-get download $package failed"
dpkg-deb --extract "$work"/*.deb "$work/package"
mkdir "$work/kernel"
cp "$work"/package/boot/vmlinuz-* "$work/kernel/vmlinuz"

# A module after everything that its own `depends=` names.
add() {
    local name=$1 file dependency
    [ -e "$work/kernel/$name.ko" ] && return
    file=$(find "$work/package" -name "$name.ko" | head -n 1)
    if [ -z "$file" ]; then
        grep -qF "/$name.ko" "$(find "$work/package" -name modules.builtin)" && return
        fail "$package has no module $name"
    fi
    touch "$work/kernel/$name.ko"
    for dependency in $(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | tr ',-' ' _'); do
        add "$dependency"
    done
    cp "$file" "$work/kernel/$name.ko"
    echo "$name" >>"$work/kernel/modules"
}
for name in "${wanted[@]}"; do
    add "$name"
done
mv --no-target-directory "$work/kernel" "$directory" 2>/dev/null || [ -e "$directory/modules" ] ||
    fail "$directory cannot be written"
