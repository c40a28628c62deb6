#!/bin/sh
# Runs a command and notes how long it took, for the summary at the end of a run.
# Usage: timed.sh NAME COMMAND…      timed.sh --summary
set -eu

log=.build/suite-seconds
mkdir -p .build
if [ "$1" = --summary ]; then
    [ -f "$log" ] || exit 0
    echo "seconds  suite"
    sort -rn "$log"
    awk '{ sum += $1 } END { printf "%7d  all of them\n", sum }' "$log"
    rm -f "$log"
    exit 0
fi
name=$1
shift
began=$(date +%s)
status=0
"$@" || status=$?
printf '%7d  %s\n' "$(($(date +%s) - began))" "$name" >>"$log"
exit $status
