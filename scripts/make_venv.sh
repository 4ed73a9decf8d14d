#!/usr/bin/env bash
# make_venv.sh PYTHON DIRECTORY: check the tools that must be there, then create the virtual environment.
set -euo pipefail
python=$1
directory=$2

fail() {
    printf 'make: %s\n' "$1" >&2
    exit 1
}

command -v cargo >/dev/null || fail "cargo not found: install Rust (rustup), 1.95 or newer"
command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null ||
    fail "no C compiler found: install one (Debian: apt-get install gcc)"
command -v "$python" >/dev/null || fail "$python not found: install Python 3.11 or newer, or set PYTHON="
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old: Python 3.11 or newer is needed; name one with PYTHON="

if [ ! -x "$directory/bin/pip" ]; then
    rm -rf "$directory"
    "$python" -m venv "$directory" ||
        fail "$python cannot create virtual environments (Debian: apt-get install python3-venv)"
fi
