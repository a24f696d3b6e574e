#!/usr/bin/env bash
# debian/control names what scripts/packages.txt does to build from, but for the
# tests' libraries and the developer's tools; and what its packaging takes.
#
# Usage: build_depends_test.sh SOURCE
set -euo pipefail
source="$1"
not_there='build-essential ccache git libbenchmark-dev libgmock-dev libgtest-dev'
of_packaging='debhelper-compat dh-sequence-installsysusers dh-sequence-python3
  python3'

listed() {
  awk '/^# section: / { taken = $3 == "build"; next }
       { sub(/#.*/, "") } taken && NF { print $1 }' \
    "$source/scripts/packages.txt"
}
named() {
  sed -n '/^Build-Depends:/,/^$/s/^ \([a-z0-9+.-]*\).*/\1/p' \
    "$source/debian/control"
}
words() { tr -s ' \n' '\n' <<<"$1" | grep .; }

differs="$(diff <(listed | grep -vxF -f <(words "$not_there") | sort) \
  <(named | grep -vxF -f <(words "$of_packaging") | sort))" || {
  echo "scripts/packages.txt (<) and debian/control (>) differ:"
  echo "$differs"
  exit 1
}
version="$(sed -n '1s/.*(\(.*\)).*/\1/p' "$source/debian/changelog")"
grep -q "^project(dfld VERSION $version " "$source/CMakeLists.txt" || {
  echo "debian/changelog says version $version, CMakeLists.txt another one"
  exit 1
}
echo well
