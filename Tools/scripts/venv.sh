#!/bin/sh
# Makes the virtual environment of the Python tests, anew only when the list of what it holds has changed.
# Usage: venv.sh FOLDER REQUIREMENTS
set -eu

folder=$1
requirements=$2
stamp="$folder/requirements.txt"

if [ -f "$stamp" ] && cmp -s "$requirements" "$stamp"; then
    exit 0
fi
echo "venv: installing $requirements into $folder"
if [ ! -x "$folder/bin/python" ]; then
    python3 -m venv "$folder"
fi
"$folder/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
# Copied last: a broken installation is tried again.
cp "$requirements" "$stamp"
