#!/bin/sh
# run.sh SOCKET: exports a model, narrows it to F16, and imports it, twice. PATH
# has dflctl.
set -eu
here=$(dirname "$0")
ctl() { dflctl --target "unix:$socket" "$@"; }
socket=$1
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for turn in 1 2; do
  ctl model export "$folder/whole$turn"
  python3 "$here/to_half.py" "$folder/whole$turn" "$folder/half$turn"
  ctl model import "$folder/half$turn"
done
cmp "$folder/half1" "$folder/half2"
cmp -s "$folder/whole1" "$folder/whole2" || echo "narrowed"
