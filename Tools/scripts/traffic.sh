#!/bin/sh
# Random traffic with a model that knows each answer: in one process with virtual time, and beside it over real sockets
# against a server of its own. Ends with 1 when either has found something; the seed is in the output.
# Usage: traffic.sh FOLDER SECONDS VENV       FOLDER: that of the programs `hearth` and `hearth-traffic`
#        traffic.sh --sanitized SECONDS VENV  builds both with AddressSanitizer first
# TRAFFIC_SEED is the seed of both, instead of one by chance.
set -eu

folder=$1
seconds=$2
venv=$3
if [ "$folder" = --sanitized ]; then
    scratch=.build/sanitize/address
    for product in hearth hearth-traffic; do
        # shellcheck disable=SC2086
        nice -n 10 swift build ${SWIFT_FLAGS:-} --sanitize=address --scratch-path "$scratch" --product "$product"
    done
    folder=$(pwd)/$scratch/debug
    # Swift's own backtracer copies memory that AddressSanitizer guards, and so hides the fault and hangs. What lives until the
    # end of the process counts as leaked.
    export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0
fi
Tools/scripts/venv.sh "$venv" Tests/Python/requirements.txt
python=$(pwd)/$venv/bin/python

set -- --seconds "$seconds" ${TRAFFIC_SEED:+--seed "$TRAFFIC_SEED"}
"$folder/hearth-traffic" simulate "$@" &
simulation=$!
result=0
(cd Tests/Python && HEARTH_BINARY=$folder/hearth "$python" -m traffic "$@") || result=1
wait $simulation || result=1
exit $result
