#!/bin/sh
# Runs the suites of a test target. What has failed is printed again at the end, where one looks first.
# Usage: test-swift.sh TARGET [OPTION OF swift test]…
set -eu

target=$1
shift
log=.build/test-$target.log
status=.build/test-$target.status
{
    code=0
    swift test "$@" --skip-build --filter "^$target\." 2>&1 || code=$?
    echo "$code" >"$status"
} | tee "$log"
code=$(cat "$status")
if [ "$code" -ne 0 ]; then
    echo "failed in $target:" >&2
    grep -a -e '✘' -e 'error:' -e 'rror: ' "$log" | head -n 40 >&2 || true
fi
# The reasons, for the last line of `make test`: ➜ Test name() skipped: "reason"
sed -n -E -e 's/^➜ .* skipped: "(.*)"$/\1/p' -e 's/^➜ (.*) skipped\.$/\1 gives no reason/p' "$log" >>.build/skipped-tests
rm -f "$log" "$status"
exit "$code"
