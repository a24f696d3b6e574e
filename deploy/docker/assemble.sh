#!/bin/sh
# Puts together what the image has over its base.
#
# Usage: assemble.sh BASE IMAGE VERSION PROGRAMS
#
#   BASE      folder with what the base has: passwd, group, and files, a list of
#             its paths
#   IMAGE     the new root; beside it IMAGE.empty, an empty folder
#   VERSION   of dfld, for the list of what is in it
#   PROGRAMS  folder of dfld and dflctl, stripped
#
# Run from the top of the source tree.
set -eu
base=$1 image=$2 version=$3 programs=$4
user=10001
install -D -m 0755 -t "$image/usr/bin" "$programs/dfld" "$programs/dflctl"
python3 deploy/docker/closure.py --base "$base/files" --version "$version" \
  --sbom "$image/usr/share/doc/dfld/sbom.spdx.json" \
  "$image" "$image/usr/bin/dfld" "$image/usr/bin/dflctl"
install -D -m 0644 LICENSE "$image/usr/share/doc/dfld/copyright"
install -m 0644 deploy/dfld.yaml deploy/plan.example.yaml \
  "$image/usr/share/doc/dfld"
mkdir -p "$image/etc"
cp "$base/passwd" "$base/group" "$image/etc/"
echo "dfld:x:$user:$user::/var/lib/dfld:/usr/sbin/nologin" >>"$image/etc/passwd"
echo "dfld:x:$user:" >>"$image/etc/group"
# COPY gives what it copies to root, so these two are copied by themselves.
mkdir -p "$image.empty"
