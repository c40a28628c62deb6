#!/bin/sh
# Runs the Python tests against the program that HEARTH_BINARY names. What needs Google's emulator skips itself, and says
# so, where that is not installed.
# Usage: HEARTH_BINARY=… test-python.sh VENV REQUESTS
set -eu

venv=$1
requests=$2
tests=Tests/Python
timed=$(pwd)/Tools/scripts/timed.sh
root=$(pwd)
Tools/scripts/venv.sh "$venv" "$tests/requirements.txt"
python=$root/$venv/bin/python
report=$root/$venv/differential.txt
SKIPPED_LOG=$root/.build/skipped-tests
export SKIPPED_LOG

# The log of the suites' durations lies at the top of the project.
run() {
    name=$1
    shift
    (cd "$root" && "$timed" "$name" env --chdir="$root/$tests" "$@")
}

# Much of it is waiting, so that there are more processes than cores. Files keep the order of their tests, and their servers.
# The judge itself belongs to it, and takes longest, so that it is first; then the comparison. The report is long, and of
# interest when something was found.
run "Python: end to end, and the judge's own tests" \
    "$python" -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder --durations=20 differential endtoend
if ! run "Python: beside Google's emulator" "$python" -m differential --requests "$requests" --report "$report"; then
    cat "$report"
    exit 1
fi
