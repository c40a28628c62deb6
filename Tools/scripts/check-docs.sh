#!/bin/sh
# Checks that the tests that docs/reference/compatibility.md names exist, so that its rows can't outlive what shows them.
set -eu

missing=0
for name in $(grep -oE '`(test_[a-z_]+|[A-Za-z0-9]+Tests)\.[A-Za-z0-9_]+`' docs/reference/compatibility.md | tr -d '`' | sort -u); do
    suite=${name%%.*}
    test=${name#*.}
    case "$suite" in
        test_*) files="Tests/Python/endtoend/$suite.py"; pattern="(def|class) $test\\b" ;;
        *) files=$(find Tests -name "$suite.swift" -o -name '*.swift' -path '*Tests/*' | xargs grep -lE "struct $suite\\b" || true)
            pattern="func $test\\b" ;;
    esac
    # shellcheck disable=SC2086 # a list of files
    if [ -z "$files" ] || ! grep -qsE "$pattern" $files; then
        echo "docs/reference/compatibility.md names $name, which is not there" >&2
        missing=1
    fi
done
exit $missing
