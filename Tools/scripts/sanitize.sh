#!/bin/sh
# Runs the Swift tests under ThreadSanitizer, then under AddressSanitizer, a target at a time.
# Usage: [SUITES='A|B'] sanitize.sh [--build] [thread|address] [target…]
# By default both, and all test targets with all suites. With --build nothing is run. SWIFT_FLAGS are arguments for SwiftPM.
set -eu

builds_only=
if [ "${1:-}" = --build ]; then
    builds_only=yes
    shift
fi
sanitizers="thread address"
case "${1:-}" in
thread | address)
    sanitizers=$1
    shift
    ;;
esac
if [ $# -gt 0 ]; then
    # Only what is asked for is built.
    HEARTH_TESTS=$(echo "$*" | tr ' ' ',')
    export HEARTH_TESTS
else
    # shellcheck disable=SC2046 # words
    set -- $(cd Tests && ls -d Hearth*) HearthEndToEndTests
fi
folder=$(pwd)/.build/sanitize
mkdir -p "$folder"
clang -O1 -g -shared -fPIC -o "$folder/mutex.so" Tests/Sanitizers/mutex.c -ldl

# Swift's own backtracer copies memory that AddressSanitizer guards, and so hides the fault and hangs.
export SWIFT_BACKTRACE=enable=no

suites=${SUITES:+"($SUITES)/"}
failures=0
run() {
    sanitizer=$1
    target=$2
    shift 2
    log=$folder/$sanitizer-$target.log
    if env "$@" nice -n 10 swift test ${SWIFT_FLAGS:-} --skip-build --sanitize="$sanitizer" --scratch-path "$folder/$sanitizer" \
        --filter "^$target\.$suites" >"$log" 2>&1 && grep -q "Test run with [1-9]" "$log"; then
        echo "$sanitizer $target: clean, $(grep -oE "[0-9]+ tests? in .* seconds" "$log" | tail -n 1)"
    else
        failures=$((failures + 1))
        echo "$sanitizer $target: see $log"
        grep -E "SUMMARY|✘|error:" "$log" | sort | uniq -c | sort -rn | head -5
    fi
}

targets=$*
for sanitizer in $sanitizers; do
    # shellcheck disable=SC2086
    nice -n 10 swift build ${SWIFT_FLAGS:-} --build-tests --sanitize="$sanitizer" --scratch-path "$folder/$sanitizer"
    [ -z "$builds_only" ] || continue
    for target in $targets; do
        case $sanitizer in
        thread) run thread "$target" LD_PRELOAD="$folder/mutex.so" ;;
        # The runtime of the tests itself leaks, once a process.
        address) run address "$target" ASAN_OPTIONS=detect_leaks=0 ;;
        esac
    done
done
exit $((failures > 0))
