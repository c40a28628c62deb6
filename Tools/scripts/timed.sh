#!/bin/sh
# Runs a command and notes how long it took, for the summary at the end of a run.
# A command that takes longer than its limit is ended, after the stacks of its test process were printed: what hangs
# once in a hundred runs must say where.
# Usage: [TIMED_MINUTES=N] timed.sh NAME COMMAND…      timed.sh --summary
set -eu

log=.build/suite-seconds
skipped=.build/skipped-tests
mkdir -p .build
if [ "$1" = --summary ]; then
    [ -f "$log" ] || exit 0
    echo "seconds  suite"
    sort -rn "$log"
    awk '{ sum += $1 } END { printf "%7d  all of them\n", sum }' "$log"
    rm -f "$log"
    # What the tests wrote that did not run, by reason.
    if [ -s "$skipped" ]; then
        sort "$skipped" | uniq -c | sort -rn | awk '
            { count = $1; sum += count; $1 = ""; reasons = reasons (NR > 1 ? ";" : "") $0 " (" count ")" }
            END { print "skipped " sum " tests:" reasons }'
    else
        echo "skipped no test"
    fi
    rm -f "$skipped"
    exit 0
fi
name=$1
minutes=${TIMED_MINUTES:-20}
shift
began=$(date +%s)

# Prints where the threads of a process and of those below it stand, and ends them, the highest first: it must not take
# the end of the others for their answer.
end_tree() {
    below=$(cat "/proc/$1/task/"*/children 2>/dev/null || true)
    if grep -q xctest "/proc/$1/comm" 2>/dev/null; then
        echo "threads of $(tr '\0' ' ' <"/proc/$1/cmdline")"
        if command -v gdb >/dev/null; then
            gdb -p "$1" -batch -ex 'thread apply all backtrace 16' 2>/dev/null || true
        else
            for thread in "/proc/$1/task/"*; do echo "$(cat "$thread/comm"): $(cat "$thread/wchan")"; done
        fi
    fi
    kill -KILL "$1" 2>/dev/null || true
    set -- $below
    for child; do end_tree "$child"; done
}

# The watch runs in the background and the command in the foreground, which alone gets an interrupt from the keyboard.
(
    trap 'exit 0' TERM
    watch=$(exec sh -c 'echo $PPID')
    waited=0
    while [ "$waited" -lt "$((minutes * 60))" ]; do
        sleep 1
        kill -0 $$ 2>/dev/null || exit 0
        waited=$((waited + 1))
    done
    trap '' TERM
    echo "$name: not done after $minutes minutes" >&2
    for child in $(cat "/proc/$$/task/"*/children); do [ "$child" = "$watch" ] || end_tree "$child" >&2; done
) &
watch=$!
status=0
"$@" || status=$?
kill "$watch" 2>/dev/null || true
printf '%7d  %s\n' "$(($(date +%s) - began))" "$name" >>"$log"
exit $status
