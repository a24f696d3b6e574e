#!/usr/bin/env bash
# Installs what is missing, builds everything, and passes all tests.
#
# Usage: scripts/test.sh [--preset NAME] [--all] [--no-install]
#
#   --preset NAME   dev (the default), release, asan or tsan; CMakePresets.json
#                   says what each is. The build is in build/NAME.
#   --all           also the tests labelled `large` (gigabytes, minutes).
#   --no-install    asks no package manager; the build then tells what it lacks.
#
# Needs root or sudo only to install packages. Exit code: 0 all tests passed,
# 1 something failed (the cause is printed), 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

preset=dev
install=1
exclude=(--label-exclude '^large$')
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --preset)
      (($# > 1)) || usage_error "--preset needs a name"
      preset="$2"
      shift
      ;;
    --preset=*) preset="${1#*=}" ;;
    --all) exclude=() ;;
    --no-install) install= ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
case "$preset" in
  dev | release | asan | tsan) ;;
  *) usage_error "unknown preset '$preset'; allowed: dev, release, asan, tsan" ;;
esac

sections=(build run test)
# TSan is clang's here.
[[ $preset != tsan ]] || sections+=(lint)
[[ -z $install ]] || "$ROOT/scripts/install-deps.sh" "${sections[@]}"
configure "$preset"
build "$preset"
say "runs the tests of build/$preset"
run ctest --test-dir "$ROOT/build/$preset" --output-on-failure \
  --no-tests=error "${exclude[@]}" ||
  die "not all tests passed, see above. One of them again, in full:" \
    "ctest --test-dir build/$preset -R NAME -V"
