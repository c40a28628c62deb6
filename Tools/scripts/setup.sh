#!/bin/sh
# Installs the Debian packages that Hearth is built and tested with. What is there already is left alone, so that
# the second run costs nothing and needs no rights.
set -eu

BUILD_PACKAGES="libsqlite3-dev libcurl4-openssl-dev zlib1g-dev libnghttp2-dev libssl-dev libre2-dev pkg-config"
TEST_PACKAGES="python3-venv"

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

missing() {
    for package in "$@"; do
        is_installed "$package" || printf '%s ' "$package"
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "setup: these packages are missing, and neither root nor sudo is at hand to install them: $needed" >&2
        exit 1
    fi
}

case "${1:-all}" in
    build) wanted="$BUILD_PACKAGES" ;;
    all) wanted="$BUILD_PACKAGES $TEST_PACKAGES" ;;
    *)
        echo "usage: setup.sh [build|all]" >&2
        exit 64
        ;;
esac

if ! command -v swift >/dev/null 2>&1; then
    echo "setup: no swift on the path. Hearth needs Swift 6.3 or newer; see https://www.swift.org/install/linux" >&2
    exit 1
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: this is no Debian; make sure that these are installed under their names here: $wanted" >&2
    exit 0
fi

# shellcheck disable=SC2086 # the lists are words
needed=$(missing $wanted)
if [ -z "$needed" ]; then
    exit 0
fi
echo "setup: installing with apt-get: $needed"
# An update may fail for a source that has nothing to do with us; the install decides.
as_root apt-get update -qq || true
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $needed >/dev/null
echo "setup: done"
