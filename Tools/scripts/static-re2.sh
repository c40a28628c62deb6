#!/bin/sh
# Prints the setting for Package.swift with which RE2 becomes a part of the program: of all that Hearth links, only this library
# has other versions in Debian 12, Debian 13 and Ubuntu 24.04. Nothing is printed where the static library is absent or needs
# Abseil, as in newer systems: there the program is one for the system that it was built on.
set -eu

library=$(clang++ -print-file-name=libre2.a)
[ -e "$library" ] || exit 0
if nm --undefined-only "$library" 2>/dev/null | grep -q absl; then exit 0; fi
echo "HEARTH_RE2=:libre2.a"
