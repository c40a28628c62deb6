#!/bin/sh
# Checks comments, names, messages and documents against the list of words in words.txt. What may stay is in
# words-allowed.txt, each line with its reason.
# Usage: check-words.sh            prints what it finds as PATH:LINE:TEXT, and fails when there is something
#        check-words.sh --unused   prints the lines of words-allowed.txt that allow nothing
set -eu
cd "$(dirname "$0")/../.."

words=Tools/scripts/words.txt
allowed=Tools/scripts/words-allowed.txt
pattern=$(grep -v '^#' "$words" | cut -f1 | paste -sd '|')
# In names made of several words, whatever the case of the first.
parts='[a-z](Turn|Place|Told|Room)(s|[A-Z0-9]|\b)|\b(Turn|Place|Told|Room)(s|[A-Z0-9])'

files() {
    find Core Server Rules Bundler Client Tools Tests docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md Makefile Package.swift \
        \( -name '*.swift' -o -name '*.md' -o -name '*.py' -o -name '*.sh' -o -name Makefile \) \
        -not -path '*/.*' -not -path 'Tests/Vectors/*' -print | LC_ALL=C sort
}

found=$(mktemp)
trap 'rm -f "$found"' EXIT
files | xargs grep -nwiE "$pattern" >"$found" || true
files | grep '\.swift$' | xargs grep -nE "$parts" >>"$found" || true

# A finding is allowed when the line of the list has the beginning of its path and an expression that its line contains.
awk -F '\t' -v mode="${1:-}" '
    NR == FNR {
        if ($0 ~ /^#/ || NF < 3) next
        count += 1; path[count] = $1; expression[count] = tolower($2); line[count] = $0
        next
    }
    {
        split($0, parts, ":"); file = parts[1]; content = tolower(substr($0, length(parts[1] parts[2]) + 3))
        for (i = 1; i <= count; i++)
            if (substr(file, 1, length(path[i])) == path[i] && content ~ expression[i]) { used[i] = 1; next }
        findings += 1
        if (mode != "--unused") print $0
    }
    END {
        if (mode == "--unused") { for (i = 1; i <= count; i++) if (!used[i]) print line[i] }
        else if (findings > 0) {
            print findings " lines have words that are not used here: see Tools/scripts/words.txt" > "/dev/stderr"
            exit 1
        }
    }' "$allowed" "$found"
