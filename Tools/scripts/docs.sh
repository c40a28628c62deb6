#!/bin/sh
# Builds the sites of the DocC catalogues into dist/docs, one folder each: HearthFirestore and HearthDatabase with the public
# API and that of HearthApp, which both export, and HearthBundle with what this package uses of it. Fails when docc warns, for
# example of a link to nothing, and when a symbol at the top of a module is in no group of its landing page.
# Read them with: python3 -m http.server -d dist/docs 8000, at http://127.0.0.1:8000/HearthFirestore/documentation/hearthfirestore
# DOCS_BASE is the path at which dist/docs is on the web server, for example /hearth; empty by default.
set -eu
cd "$(dirname "$0")/../.."

docc=$(command -v docc || echo "$(dirname "$(readlink -f "$(command -v swift)")")/docc")
# HearthBundle is built with HearthFirestore.
for target in HearthFirestore HearthDatabase; do
    # shellcheck disable=SC2086 # a list of flags
    swift build ${SWIFT_FLAGS:-} --target "$target"
done
# shellcheck disable=SC2086 # a list of flags
built=$(swift build ${SWIFT_FLAGS:-} --show-bin-path)
triple=$(swift -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
graphs=.build/symbol-graphs
rm -rf "$graphs" dist/docs
mkdir -p dist/docs

# site MODULE CATALOGUE ACCESS [FLAG]: extracts a module's symbols and builds its site.
site() {
    module=$1 catalogue=$2 access=$3
    shift 3
    mkdir -p "$graphs/$module"
    includes=
    for map in Core/Platform/*/module.modulemap; do includes="$includes -I $(dirname "$map")"; done
    # shellcheck disable=SC2086 # a list of flags
    swift symbolgraph-extract -module-name "$module" -target "$triple" -I "$built/Modules" $includes \
        -minimum-access-level "$access" "$@" -output-dir "$graphs/$module"
    "$docc" convert "$catalogue" --additional-symbol-graph-dir "$graphs/$module" --output-dir "dist/docs/$module" \
        --fallback-display-name "$module" --fallback-bundle-identifier "$module" \
        --hosting-base-path "${DOCS_BASE:-}/$module" --warnings-as-errors
    Tools/scripts/check-topics "dist/docs/$module" "$module"
}

site HearthFirestore Client/Firestore/HearthFirestore.docc public -experimental-allowed-reexported-modules=HearthApp
site HearthDatabase Client/Database/HearthDatabase.docc public -experimental-allowed-reexported-modules=HearthApp
site HearthBundle Bundler/HearthBundle.docc package
