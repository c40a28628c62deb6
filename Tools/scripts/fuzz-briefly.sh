#!/bin/sh
# Fuzzes one entry point that is built, notes the time, and shows what was found. Several may run at a time.
# Usage: fuzz-briefly.sh TARGET SECONDS [arguments for libFuzzer]
set -eu

target=$1
log=.build/fuzz-$target.log
if Tools/scripts/timed.sh "fuzz $target" Tools/scripts/fuzz.sh "$@" >"$log" 2>&1; then
    echo "fuzz $target: clean"
else
    tail -n 60 "$log"
    exit 1
fi
