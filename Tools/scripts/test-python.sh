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

# The log of the suites' durations lies at the top of the project.
run() {
    name=$1
    shift
    (cd "$root" && "$timed" "$name" env --chdir="$root/$tests" "$@")
}

run "Python: end to end" "$python" -m pytest -q endtoend
# The judge itself first, then the comparison. The report is long, and of interest when something was found.
run "Python: the judge's own tests" "$python" -m pytest -q differential
if ! run "Python: beside Google's emulator" "$python" -m differential --requests "$requests" --report "$report"; then
    cat "$report"
    exit 1
fi
