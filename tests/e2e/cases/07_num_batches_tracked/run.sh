#!/bin/sh
# run.sh SOCKET: exports a model with batch normalisation, adds counters to the
# file, and imports it. PATH has dflctl.
set -eu
here=$(dirname "$0")
ctl() { dflctl --timeout 60s --target "unix:$socket" "$@"; }
socket=$1
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
ctl model export "$folder/before"
python3 "$here/add_counters.py" "$folder/before" "$folder/counted"
ctl model import "$folder/counted"
ctl model export "$folder/after"
cmp "$folder/before" "$folder/after"
