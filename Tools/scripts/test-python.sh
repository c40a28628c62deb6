#!/bin/sh
# Runs the Python tests against the debug build. What needs Google's emulator skips itself, and says so, where that is
# not installed.
# Usage: test-python.sh VENV REQUESTS [arguments for SwiftPM]
set -eu

venv=$1
requests=$2
shift 2

tests=Tests/Python
if [ ! -f "$tests/requirements.txt" ]; then
    echo "test-python: no $tests yet, skipped"
    exit 0
fi
Tools/scripts/venv.sh "$venv" "$tests/requirements.txt"
python=$(pwd)/$venv/bin/python

swift build "$@" --product hearth
HEARTH_BINARY=$(cd "$(swift build "$@" --show-bin-path)" && pwd)/hearth
export HEARTH_BINARY

report=$(pwd)/$venv/differential.txt

cd "$tests"
if [ -d endtoend ]; then
    "$python" -m pytest -q endtoend
fi
if [ -d differential ]; then
    # The judge itself first, then the comparison. The report is long, and of interest when something was found.
    "$python" -m pytest -q differential
    if ! "$python" -m differential --requests "$requests" --report "$report"; then
        cat "$report"
        exit 1
    fi
fi
