#!/bin/sh
# Fuzzes one entry point with libFuzzer and AddressSanitizer, from the kept seeds; new inputs stay in .build/fuzz.
# Usage: fuzz.sh TARGET [SECONDS] [arguments for libFuzzer]     TARGET: a folder of Tests/Fuzz that has seeds
#        fuzz.sh --build                                        only builds
# FUZZ_CONFIGURATION is `release`, which runs faster, or `debug`, which is built faster; FUZZ_BUILT says that it is built;
# SWIFT_FLAGS are arguments for SwiftPM.
set -eu

build() {
    export HEARTH_FUZZ=1
    # shellcheck disable=SC2086
    swift build --disable-index-store -Xswiftc -g ${SWIFT_FLAGS:-} --scratch-path "$scratch" --configuration "$configuration" \
        --product HearthFuzz -Xswiftc -sanitize=fuzzer,address "$@"
}

scratch=.build/fuzz
configuration=${FUZZ_CONFIGURATION:-release}
if [ "$1" = --build ]; then
    build
    exit
fi
target=$1
seconds=${2:-600}
shift
[ $# -eq 0 ] || shift

seeds=Tests/Fuzz/$target/seeds
if [ -z "$target" ] || [ ! -d "$seeds" ]; then
    # shellcheck disable=SC2046 # words
    echo "fuzz: TARGET is one of:" $(cd Tests/Fuzz && ls -d */seeds | cut -d/ -f1) >&2
    exit 64
fi
corpus=$scratch/corpus/$target
mkdir -p "$corpus"
[ -n "${FUZZ_BUILT:-}" ] || build
binary=$(build --show-bin-path)/HearthFuzz
# Swift's own backtracer copies memory that AddressSanitizer guards, and so hides the fault and hangs.
export SWIFT_BACKTRACE=enable=no
# `Data` keeps its pointers in a form that LeakSanitizer does not see, and Foundation loses the buffer of an empty file.
export LSAN_OPTIONS="suppressions=Tests/Fuzz/leaks.txt:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
# What a finding leaves behind belongs into the seeds once it is mended.
FUZZ_TARGET=$target exec nice -n 10 "$binary" "$corpus" "$seeds" -max_total_time="$seconds" -max_len=4096 \
    -timeout=10 -rss_limit_mb=4096 -artifact_prefix="$scratch/$target-" -print_final_stats=1 "$@"
