#!/bin/sh
# Tries an archive and a Debian package in fresh systems without a toolchain, and says what it saw: Debian 12, Debian 13 and
# Ubuntu 24.04, made with debootstrap. Needs root. Each system is booted with systemd-nspawn, where that is installed and
# works; otherwise the program is started without systemd.
# Usage: check-release.sh TARBALL DEB [SYSTEM…]      SYSTEM: bookworm, trixie, noble
# RELEASE_ROOTS is the folder for the systems, .build/roots by default: what is there is used again. With RELEASE_BOOT=no
# nothing is booted.
set -eu

tarball=$(realpath "$1")
deb=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- bookworm trixie noble
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "check-release: needs root and debootstrap" >&2
    exit 1
fi
roots=$(realpath "${RELEASE_ROOTS:-.build/roots}")
mkdir -p "$roots"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(pwd)/Tools/scripts

# Makes a system that only has what is essential, systemd, and curl for the requests of the check.
bootstrap() {
    system=$1
    [ ! -e "$roots/$system/.made" ] || return 0
    rm -rf "${roots:?}/$system"
    case "$system" in
        noble)
            keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
            # shellcheck disable=SC2046 # two words, or one
            set -- $([ -e $keyring ] && echo "--keyring=$keyring" || echo --no-check-gpg) --components=main,universe
            mirror=http://archive.ubuntu.com/ubuntu
            script=/usr/share/debootstrap/scripts/gutsy
            ;;
        *)
            set -- --components=main
            mirror=http://deb.debian.org/debian
            script=/usr/share/debootstrap/scripts/sid
            ;;
    esac
    debootstrap --variant=minbase --include=systemd,init-system-helpers,curl "$@" "$system" "$roots/$system" "$mirror" "$script" \
        >"$work/$system.log" 2>&1 || { tail -n 5 "$work/$system.log" >&2; return 1; }
    touch "$roots/$system/.made"
}

# A newer version of the package, for the upgrade: the same program under a higher number.
dpkg-deb --raw-extract "$deb" "$work/next"
sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip --build "$work/next" "$work/next.deb" >/dev/null

failures=0
for system in "$@"; do
    echo "== $system"
    if ! bootstrap "$system"; then
        echo "skipped: $system cannot be made here"
        continue
    fi
    root=$work/$system
    cp -a --reflink=auto "$roots/$system" "$root"
    mkdir -p "$root/check"
    cp "$tarball" "$root/check/hearth.tar.gz"
    cp "$deb" "$root/check/hearth.deb"
    cp "$work/next.deb" "$root/check/next.deb"
    cp "$here/check-release-inside.sh" "$root/check/inside.sh"
    cp "$here/check-release-faults.pl" "$root/check/faults.pl"
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    # All that is installed later: the check has no network but its own, so that no other server has its port.
    chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --download-only /check/hearth.deb' \
        >"$work/$system.log" 2>&1 || { tail -n 5 "$work/$system.log" >&2; }
    boots=no
    if [ "${RELEASE_BOOT:-yes}" = yes ] && command -v systemd-nspawn >/dev/null; then
        boots=yes
        # The check is a service of that system, which ends it. Newer versions of systemd want to be asked before they take
        # control groups of version 1, which the machine may have.
        cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
After=basic.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/sh /check/inside.sh booted
StandardOutput=append:/check/log
StandardError=inherit
UNIT
        mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
        ln -s /etc/systemd/system/check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"
        timeout 1800 systemd-nspawn --quiet --directory="$root" --register=no --keep-unit --private-network --boot \
            SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 >"$work/boot.log" 2>&1 || true
        if ! grep -q '^started' "$root/check/log" 2>/dev/null; then
            echo "skipped: the boot of $system with systemd-nspawn: $(grep -v '^$' "$work/boot.log" | tail -n 1)"
            boots=no
        fi
    fi
    if [ $boots = no ]; then
        mount --bind /proc "$root/proc"
        mount --bind /dev "$root/dev"
        unshare --net chroot "$root" /bin/sh /check/inside.sh plain >"$root/check/log" 2>&1 || true
        umount "$root/proc" "$root/dev"
    fi
    grep -v '^started' "$root/check/log" || true
    grep -q '^all of it passed' "$root/check/log" || failures=$((failures + 1))
    rm -rf "$root"
done
exit $((failures > 0))
