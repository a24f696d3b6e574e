#!/usr/bin/env bash
# Installs what is missing, builds dfld and dflctl, and runs the demo: four
# daemons on this machine learn together, with no server.
#
# Usage: scripts/demo.sh [--no-install] [DEMO-ARGUMENT...]
#
#   --no-install    asks no package manager; the build then tells what it lacks.
#   DEMO-ARGUMENT   goes to the demo; scripts/demo.sh --help-demo lists them.
#
# Needs root or sudo only to install packages. The programs are built in
# build/release. Exit code: the demo's; 1 also if the build failed.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

install=1
arguments=()
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --help-demo) exec "$ROOT/scripts/demo/run_demo" --help ;;
    --no-install) install= ;;
    *) arguments+=("$1") ;;
  esac
  shift
done

[[ -z $install ]] || "$ROOT/scripts/install-deps.sh" build run
configure release
build release dfld dflctl
say "starts the demo"
exec "$ROOT/scripts/demo/run_demo" "${arguments[@]}"
