#!/bin/sh
# Checks that the tests that docs/reference names exist, so that its rows can't outlive what shows them, that sources that the
# documents name are there, that every metric and every module is described, that each function that docs/internals names with
# its file or its type is declared there, and that the documents have the version of the program.
# shellcheck disable=SC2016 # the backquotes of Markdown
set -eu

missing=0
for name in $(grep -ohE '`(test_[a-z_]+|[A-Za-z0-9]+Tests)(\.[A-Za-z0-9_]+)?`' docs/reference/*.md | tr -d '`' | sed 's/\.py$//' | sort -u); do
    suite=${name%%.*}
    # Without a function: the suite itself.
    test=${name#"$suite"}
    test=${test#.}
    case "$suite" in
        test_*) files=Tests/Python/endtoend/$suite.py; pattern="(def|class) $test\\b" ;;
        # A target with all of its suites, or a suite.
        *) files=$(if [ -d "Tests/$suite" ]; then echo "Tests/$suite"; else grep -rlE --include='*.swift' "(struct|class) $suite\\b" Tests || true; fi)
            pattern="func $test\\b" ;;
    esac
    [ -n "$test" ] || pattern=.
    # shellcheck disable=SC2086 # a list of files
    if [ -z "$files" ] || ! grep -qrsE "$pattern" $files; then
        echo "docs/reference names $name, which is not there" >&2
        missing=1
    fi
done

for page in README.md CONTRIBUTING.md $(find docs Tools/Examples -name '*.md'); do
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

# The names of targets, but for the tests and what they share.
for target in $(sed -n '/^    targets: \[/,/Tests, one folder a target/p' Package.swift | tr -d '\n' |
    grep -oE '\.(target|executableTarget|systemLibrary)\( *name: "[^"]+"' | grep -oE '"[^"]+"' | tr -d '"'); do
    if ! grep -qF "\`$target\`" docs/internals/architecture.md; then
        echo "docs/internals/architecture.md lacks the target $target" >&2
        missing=1
    fi
done

# A version where somebody copies it: names of files, URLs, manifests, what the server prints.
version=$(sed -n 's/.*static let string = "\(.*\)"/\1/p' Core/Model/HearthVersion.swift)
named=$(grep -rnoE --include='*.md' '(hearth[-_]|download/v|hearth", from: "|^Version |Hearth |; this is )[0-9]+\.[0-9]+\.[0-9]+' README.md docs Client)
for page in README.md docs/guide/README.md docs/guide/installing.md docs/guide/apple-code.md docs/reference/stability.md; do
    if ! printf '%s\n' "$named" | grep -qE "^$page:"; then
        echo "$page names no version" >&2
        missing=1
    fi
done
if printf '%s\n' "$named" | grep -vE "[^0-9.]$(printf %s "$version" | sed 's/\./\\./g')$" >&2; then
    echo "these are other versions than $version of Core/Model/HearthVersion.swift" >&2
    missing=1
fi
if ! grep -qF "$version" CHANGELOG.md; then
    echo "CHANGELOG.md has nothing about $version" >&2
    missing=1
fi

# `File.swift` `function`, `other` and `Type.member`, `other`. A member of a type may be in any file that declares or extends it.
declarations=$(mktemp)
trap 'rm -f "$declarations"' EXIT
grep -roE --include='*.swift' \
    -e '\b(func|struct|class|enum|protocol|actor|extension|typealias) [A-Za-z_][A-Za-z0-9_.]*' \
    -e '^ {0,4}[a-z@][a-z() @A-Za-z]*\b(var|let) [A-Za-z_][A-Za-z0-9_]*' -e '^ {0,4}(var|let) [A-Za-z_][A-Za-z0-9_]*' \
    -e '\b(init|subscript)\b' -e '^ *(indirect )?case [a-z][^:=]*' \
    Core Rules Bundler Server Client Tools Tests >"$declarations"
# shellcheck disable=SC2016 # a program of awk
if ! awk '
    function fail(message) { print page " names " message > "/dev/stderr"; failures += 1 }
    # Whether one of the files, separated by spaces, declares a name.
    function declares(files, name,    list, count, i) {
        count = split(files, list, " ")
        for (i = 1; i <= count; i++) if ((list[i], name) in declared) return 1
        return 0
    }
    function note(path, words,    count, list, kind, name, i) {
        if (words ~ /^ *(indirect )?case /) {
            sub(/^ *(indirect )?case /, "", words)
            count = split(words, list, /, */)
            for (i = 1; i <= count; i++) { sub(/[^A-Za-z0-9_].*/, "", list[i]); declared[path, list[i]] = 1 }
            return
        }
        count = split(words, list, " ")
        name = list[count]; kind = list[count - 1]
        declared[path, name] = 1
        if (kind !~ /^(struct|class|enum|protocol|actor|extension|typealias)$/) return
        # The last part of a nested name.
        sub(/.*[.]/, "", name)
        if (!((path, "type", name) in known)) { known[path, "type", name] = 1; files_of[name] = files_of[name] " " path }
    }
    FILENAME == ARGV[1] {
        colon = index($0, ":"); path = substr($0, 1, colon - 1)
        if (!(path in seen)) {
            seen[path] = 1; base = path; sub(/.*\//, "", base); paths_of[base] = paths_of[base] " " path
        }
        note(path, substr($0, colon + 1))
        next
    }
    FNR == 1 { check(); page = FILENAME; content = ""; fenced = 0 }
    /^ *```/ { fenced = !fenced; next }
    !fenced { sub(/^ +/, ""); content = content " " $0 }
    function check(    count, parts, i, code, before, name, type, where, afterFile) {
        count = split(content, parts, "`")
        where = ""
        for (i = 2; i <= count; i += 2) {
            code = parts[i]; before = parts[i - 1]; name = code; sub(/[(].*/, "", name)
            if (code ~ /^[A-Za-z0-9_+\/]+[.]swift$/) {
                type = code
                where = code ~ /\// ? code : paths_of[code]
                if (where == "" && code != "Package.swift") fail(code ", which is not there")
                afterFile = 1
            } else if (name ~ /^[A-Z][A-Za-z0-9]*[.][a-z][A-Za-z0-9]*$/ && name !~ /[.](md|json|py|sh|rules)$/) {
                type = name; sub(/[.].*/, "", type); sub(/.*[.]/, "", name)
                where = files_of[type]
                if (!declares(where, name)) fail(type "." name ", which is not there")
                afterFile = 0
            } else if (where != "" && name ~ /^[a-z][A-Za-z0-9]*$/ && (before ~ /^(, | and |, then )$/ || afterFile && before ~ /^:? $/)) {
                if (!declares(where, name)) fail(name " of " type ", which is not there")
                afterFile = 0
            } else {
                where = ""
            }
        }
    }
    END { check(); exit failures > 0 }' "$declarations" docs/internals/*.md; then
    missing=1
fi
exit $missing
