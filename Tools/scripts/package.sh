#!/bin/sh
# Makes the files of a release from a program that is built: an archive, a Debian package, or the program alone. What is
# made of the same program and commit is the same, byte for byte.
# Usage: package.sh program|tarball|deb PROGRAM [OUTPUT]
#   program   OUTPUT is PROGRAM without symbols and with the commit in it
#   tarball   OUTPUT/hearth-VERSION-linux-ARCHITECTURE.tar.gz and its .sha256
#   deb       OUTPUT/hearth_VERSION_ARCHITECTURE.deb and its .sha256
# OUTPUT is dist by default. HEARTH_COMMIT is the commit where there is no repository, SOURCE_DATE_EPOCH the time of the
# files, HEARTH_MAINTAINER the package's maintainer.
set -eu

kind=$1
program=$(realpath "$2")
cd "$(dirname "$0")/../.."
output=${3:-dist}

version=$(sed -n 's/.*static let string = "\(.*\)"/\1/p' Core/Model/HearthVersion.swift)
in_repository() { [ -e .git ] && command -v git >/dev/null && git -c safe.directory='*' rev-parse --quiet --verify HEAD >/dev/null; }
if in_repository; then
    commit=$(git -c safe.directory='*' describe --always --dirty --abbrev=12 --exclude='*')
    epoch=$(git -c safe.directory='*' log -1 --format=%ct)
else
    commit=
    epoch=$(stat -c %Y CHANGELOG.md)
fi
commit=${HEARTH_COMMIT:-$commit}
epoch=${SOURCE_DATE_EPOCH:-$epoch}
# For gzip, dpkg-deb and the manual page.
export SOURCE_DATE_EPOCH="$epoch"
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The program without symbols, with the commit in the section that Core/Platform/CBuild has for it.
write_program() {
    { printf '%.63s' "$commit"; head -c 64 /dev/zero; } | head -c 64 >"$work/commit"
    objcopy --strip-all --update-section ".hearth_commit=$work/commit" "$program" "$1"
    chmod 755 "$1"
}

# The manual page and the completions, which the program itself prints.
write_generated() {
    "$work/hearth" manual --date "$(date -u -d "@$epoch" +%F)" >"$work/hearth.1"
    for shell in bash zsh fish; do "$work/hearth" completion "$shell" >"$work/completion.$shell"; done
}

# Files of a folder, with times and owners that are always the same, as a tar on standard output.
archive() {
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" --format=gnu -C "$1" "$2"
}

# The documentation beside README.md, so that its links lead somewhere and the help may name pages.
put_docs() {
    for folder in . guide reference internals decisions; do
        mkdir -p "$1/docs/$folder"
        install -m 644 docs/$folder/*.md "$1/docs/$folder"
    done
}

put_checksum() { (cd "$(dirname "$1")" && sha256sum "$(basename "$1")" >"$(basename "$1").sha256" && cat "$(basename "$1").sha256"); }

tarball() {
    name=hearth-$version-linux-$(uname -m)
    root=$work/$name
    mkdir -p "$root/completions" "$root/systemd"
    install -m 755 "$work/hearth" "$root/hearth"
    install -m 644 LICENSE README.md CHANGELOG.md packaging/NOTICE "$work/hearth.1" "$root"
    put_docs "$root"
    install -m 644 "$work/completion.bash" "$root/completions/hearth"
    install -m 644 "$work/completion.zsh" "$root/completions/_hearth"
    install -m 644 "$work/completion.fish" "$root/completions/hearth.fish"
    install -m 644 packaging/hearth.service packaging/hearth.json "$root/systemd"
    archive "$work" "$name" | gzip -9n >"$output/$name.tar.gz"
    put_checksum "$output/$name.tar.gz"
}

# The packages of the libraries that the program names, with alternatives: Debian 13 and Ubuntu 24.04 have new names for
# some. A library that is not in this list ends the build, so that none gets in unnoticed.
depends() {
    readelf -d "$work/hearth" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | LC_ALL=C sort | while read -r library; do
        case "$library" in
            libc.so.6 | libm.so.6 | ld-linux*) ;;
            libssl.so.3 | libcrypto.so.3) echo "libssl3 (>= 3.0.0) | libssl3t64" ;;
            libcurl.so.4) echo "libcurl4 (>= 7.88) | libcurl4t64" ;;
            libnghttp2.so.14) echo "libnghttp2-14 (>= 1.50.0)" ;;
            libsqlite3.so.0) echo "libsqlite3-0 (>= 3.40.0)" ;;
            libz.so.1) echo "zlib1g (>= 1:1.2.11)" ;;
            libstdc++.so.6) echo "libstdc++6 (>= 12)" ;;
            libgcc_s.so.1) echo "libgcc-s1" ;;
            *)
                echo "package: no package is known for $library; for a release RE2 is linked statically: see static-re2.sh" >&2
                return 1
                ;;
        esac
    done
    # The newest version of glibc that one of the symbols has.
    echo "libc6 (>= $(readelf -VW "$work/hearth" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -Vu | tail -n 1))"
}

deb() {
    case "$(uname -m)" in
        x86_64) architecture=amd64 ;;
        aarch64) architecture=arm64 ;;
        *) architecture=$(dpkg --print-architecture) ;;
    esac
    maintainer=${HEARTH_MAINTAINER:-The Hearth authors <hearth@localhost>}
    depends >"$work/depends"
    root=$work/deb
    doc=$root/usr/share/doc/hearth
    mkdir -p "$root/DEBIAN" "$doc"
    install -D -m 755 "$work/hearth" "$root/usr/bin/hearth"
    install -D -m 644 packaging/hearth.json "$root/etc/hearth/hearth.json"
    install -D -m 644 packaging/hearth.service "$root/usr/lib/systemd/system/hearth.service"
    install -D -m 644 "$work/completion.bash" "$root/usr/share/bash-completion/completions/hearth"
    install -D -m 644 "$work/completion.zsh" "$root/usr/share/zsh/vendor-completions/_hearth"
    install -D -m 644 "$work/completion.fish" "$root/usr/share/fish/vendor_completions.d/hearth.fish"
    mkdir -p "$root/usr/share/man/man1"
    gzip -9nc "$work/hearth.1" >"$root/usr/share/man/man1/hearth.1.gz"
    install -m 644 packaging/debian/copyright packaging/NOTICE README.md "$doc"
    put_docs "$doc"
    gzip -9nc CHANGELOG.md >"$doc/NEWS.gz"
    printf 'hearth (%s) stable; urgency=medium\n\n  * Release: see NEWS.gz.\n\n -- %s  %s\n' "$version" "$maintainer" \
        "$(LC_ALL=C date -u -d "@$epoch" '+%a, %d %b %Y %H:%M:%S +0000')" | gzip -9nc >"$doc/changelog.gz"

    (cd "$root" && find usr etc -type f -exec md5sum '{}' + | LC_ALL=C sort -k 2 >DEBIAN/md5sums)
    echo /etc/hearth/hearth.json >"$root/DEBIAN/conffiles"
    install -m 755 packaging/debian/postinst packaging/debian/prerm packaging/debian/postrm "$root/DEBIAN"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@MAINTAINER@/$(printf '%s' "$maintainer" | sed 's|[&/\\]|\\&|g')/" \
        -e "s/@SIZE@/$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)/" \
        -e "s/@DEPENDS@/$(LC_ALL=C sort -u "$work/depends" | paste -sd, | sed 's/,/, /g')/" packaging/debian/control.in >"$root/DEBIAN/control"
    find "$root" -exec touch --no-dereference --date="@$epoch" '{}' +
    file=$output/hearth_${version}_$architecture.deb
    dpkg-deb --root-owner-group -Zxz --build "$root" "$file" >/dev/null
    put_checksum "$file"
}

if [ "$kind" = program ]; then
    write_program "$output"
    exit
fi
mkdir -p "$output"
write_program "$work/hearth"
write_generated
case "$kind" in
    tarball) tarball ;;
    deb) deb ;;
    *)
        echo "usage: package.sh program|tarball|deb PROGRAM [OUTPUT]" >&2
        exit 64
        ;;
esac
