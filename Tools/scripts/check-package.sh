#!/bin/sh
# Checks that a package outside of this repository can depend on it by a URL and a version, as the guide says: what is committed
# is cloned and tagged, a package is made of the manifests and samples of README.md and docs/guide, and its programs are built
# and run against a server in memory.
# Usage: check-package.sh PROGRAM      PROGRAM is a built `hearth`; FOLDER=… keeps the package there
set -eu

program=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${FOLDER:-$(mktemp -d)}
server=
mkdir -p "$folder"

finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -n "${FOLDER:-}" ] || rm -rf "$folder"
}
trap finish EXIT

fail() {
    echo "check-package: $1" >&2
    exit 1
}

# block FILE BEGINNING [NUMBER]: a block of Swift of a page, by the beginning of its first line.
block() {
    awk -v beginning="$2" -v wanted="${3:-1}" '
        /^```/ && inside { inside = 0; if (is) exit; next }
        /^```swift$/ { inside = 1; first = 1; is = 0; next }
        inside && first { first = 0; if (index($0, beginning) == 1) { count += 1; is = count == wanted } }
        inside && is' "$root/$1"
}

# The version that the guide names, at a URL.
version=$(grep -ohE 'OWNER/hearth", from: "[0-9.]+"' "$root/docs/guide/README.md" | cut -d '"' -f 3)
git clone --quiet --bare "$root" "$folder/hearth.git"
git -C "$folder/hearth.git" tag --force "$version" HEAD >/dev/null
url="file://$folder/hearth.git"

# package NAME FILE NUMBER: a package with a manifest of a page.
package() {
    mkdir -p "$folder/$1/Sources/$1"
    block "$2" "// swift-tools-version" "$3" | sed "s|https://github.com/OWNER/hearth|$url|" >"$folder/$1/Package.swift"
    grep -qF "$url" "$folder/$1/Package.swift" || fail "the manifest of $2 does not name the URL"
}

# sample PACKAGE NUMBER: the README's sample, for the server's port, as the program of a package.
sample() {
    block README.md "import Hearth" "$2" | sed "s/127.0.0.1:8080/127.0.0.1:$port/; s/port: 8080/port: $port/" \
        >"$folder/$1/Sources/$1/main.swift"
    grep -q "$port" "$folder/$1/Sources/$1/main.swift" || fail "README.md has no sample $2 in Swift"
}

# Nothing of the machine's own caches and settings, nor of this repository's tests.
run() {
    (
        cd "$folder/$1"
        env -u HEARTH_TESTS -u HEARTH_FUZZ swift "$2" --cache-path "$folder/cache" --config-path "$folder/configuration" \
            --security-path "$folder/security"
    )
}

# build PACKAGE: without a warning.
build() {
    began=$(date +%s)
    run "$1" build >"$folder/build.log" 2>&1 || { cat "$folder/build.log" >&2; fail "$1 cannot be built"; }
    if grep -q 'warning:' "$folder/build.log"; then
        grep 'warning:' "$folder/build.log" >&2
        fail "the build of $1 has warnings"
    fi
    echo "check-package: built $1 in $(($(date +%s) - began)) s"
}

# The program's output; what swift prints about the build is on standard error.
output() {
    env XDG_DATA_HOME="$folder/data" "$folder/$1/.build/debug/$1"
}

"$program" serve --memory --port 0 >"$folder/server.log" 2>&1 &
server=$!
until port=$(grep -oE 'FIRESTORE_EMULATOR_HOST=[^ ]*' "$folder/server.log" | grep -oE '[0-9]+$'); do
    kill -0 "$server" 2>/dev/null || { cat "$folder/server.log" >&2; fail "the server does not start"; }
    sleep 0.05
done

# The samples of the README, with the libraries' own names.
package notes docs/guide/README.md 1
sample notes 1
build notes
[ "$(output notes)" = 1 ] || fail "the README's sample of Firestore does not find the city"
sample notes 2
build notes
output notes
curl -sS "http://127.0.0.1:$port/users/eva.json?ns=demo-default-rtdb" | grep -q '"name":"Eva"' ||
    fail "the README's sample of the Realtime Database writes nothing"
for module in HearthServer HearthHost hearth hearth_bench HearthFuzzing HearthTestSupport; do
    [ ! -e "$folder/notes/.build/debug/$module.build" ] || fail "a package that uses the client builds $module"
done

# The same with the names of Google's library, and code that was written for it, with each manifest of the page.
for number in 1 2; do
    package cities docs/guide/apple-code.md "$number"
    sample cities 1
    sed -i "s/^import HearthFirestore.*/import FirebaseCore\nimport FirebaseFirestore/" "$folder/cities/Sources/cities/main.swift"
    block docs/guide/apple-code.md "import FirebaseCore" 1 >"$folder/cities/Sources/cities/CityStore.swift"
    grep -q 'class CityStore' "$folder/cities/Sources/cities/CityStore.swift" || fail "apple-code.md has no CityStore"
    build cities
    [ "$(output cities)" = 1 ] || fail "the sample with Google's imports does not find the city"
done
echo "check-package: a package that depends on this one by its URL works"
