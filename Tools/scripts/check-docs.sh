#!/bin/sh
# Checks that the tests that docs/reference/compatibility.md and limits.md name exist, so that their rows can't outlive what
# shows them, that what the documents link to is there, and that every metric is described.
set -eu

compatibility="docs/reference/compatibility.md docs/reference/limits.md"
missing=0
# shellcheck disable=SC2086 # a list of files
for name in $(grep -ohE '`(test_[a-z_]+|[A-Za-z0-9]+Tests)\.[A-Za-z0-9_]+`' $compatibility | tr -d '`' | sort -u); do
    suite=${name%%.*}
    test=${name#*.}
    case "$suite" in
        test_*) files="Tests/Python/endtoend/$suite.py"; pattern="(def|class) $test\\b" ;;
        *) files=$(find Tests -name "$suite.swift" -o -name '*.swift' -path '*Tests/*' | xargs grep -lE "struct $suite\\b" || true)
            pattern="func $test\\b" ;;
    esac
    # shellcheck disable=SC2086 # a list of files
    if [ -z "$files" ] || ! grep -qsE "$pattern" $files; then
        echo "docs/reference names $name, which is not there" >&2
        missing=1
    fi
done

for page in README.md CONTRIBUTING.md $(find docs -name '*.md'); do
    folder=$(dirname "$page")
    for link in $(grep -oE '\]\([^)# ]+' "$page" | cut -c3- | grep -v '://' | sort -u); do
        if [ ! -e "$folder/$link" ]; then
            echo "$page links to $link, which is not there" >&2
            missing=1
        fi
    done
    # Paths of sources, as `Core/Wire` or `Core/Wire/WireMessage.swift`.
    for path in $(grep -oE '`(Core|Rules|Bundler|Server|Client|Tools|Tests|docs)/[A-Za-z0-9_./+-]+`' "$page" | tr -d '`' | sort -u); do
        case "$path" in
            # A pattern for any of them.
            */test_FILE.py) continue ;;
        esac
        if [ ! -e "$path" ] && [ ! -e "$path.swift" ]; then
            echo "$page names $path, which is not there" >&2
            missing=1
        fi
    done
done

for metric in $(grep -ohE '"hearth_[a-z_]+"' Server/Host/Metrics/*.swift | tr -d '"' | sort -u); do
    if ! grep -qF "$metric" docs/reference/operations.md; then
        echo "docs/reference/operations.md lacks $metric" >&2
        missing=1
    fi
done
exit $missing
