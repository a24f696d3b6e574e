#!/usr/bin/env bash
# Installs what is missing, builds everything, and passes all tests.
#
# Usage: scripts/test.sh [--preset NAME] [--labels A,B | --faults | --all]
#                        [--no-install]
#
#   --preset NAME   dev (the default), release, asan or tsan; CMakePresets.json
#                   says what each is. The build is in build/NAME.
#   --labels A,B    builds and runs only the tests that carry one of these
#                   labels: unit, golden, threaded.
#   --faults        only the tests labelled `faults`. Those with networks of
#                   their own take root, and are skipped without it.
#   --all           also the tests labelled `large` (gigabytes, minutes),
#                   `network` (dozens of daemons, a quarter of an hour),
#                   `arm64` (scripts/arm64.sh) and `page` (a browser, a minute).
#   --no-install    asks no package manager; the build then tells what it lacks.
#
# Needs root or sudo only to install packages. Exit code: 0 all tests passed,
# 1 something failed (the cause is printed), 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

preset=dev
install=1
targets=()
choice=(--label-exclude '^(large|network|arm64|page)$')
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --preset | --labels)
      (($# > 1)) || usage_error "$1 needs a value"
      set -- "$1=$2" "${@:3}"
      continue
      ;;
    --preset=*) preset="${1#*=}" ;;
    --labels=*)
      IFS=, read -ra labels <<<"${1#*=}"
      targets=(dfl_rooms)
      for label in "${labels[@]}"; do
        case "$label" in
          unit | golden | threaded) targets+=("${label}_tests") ;;
          *) usage_error "unknown label '$label'; allowed: unit, golden," \
            "threaded" ;;
        esac
      done
      ((${#labels[@]})) || usage_error "--labels needs a value"
      choice=(--label-regex "^($(IFS='|' && printf '%s' "${labels[*]}"))\$")
      ;;
    --faults)
      targets=(dfl_rooms dfld dflctl faults_tests)
      choice=(--label-regex '^faults$')
      ;;
    --all) choice=() ;;
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
# The sanitizers' presets are built by clang.
[[ $preset != ?san ]] || sections+=(lint)
[[ -z $install ]] || "$ROOT/scripts/install-deps.sh" "${sections[@]}"
configure "$preset"
build "$preset" "${targets[@]}"
say "runs the tests of build/$preset"
run ctest --test-dir "$ROOT/build/$preset" --output-on-failure \
  --test-output-size-passed 1000000 \
  --no-tests=error --parallel "$(nproc)" "${choice[@]}" ||
  die "not all tests passed, see above. One of them again, in full:" \
    "ctest --test-dir build/$preset -R NAME -V"

# What a passed test left out, with its reason.
skipped="$(grep -ah -A 1 ': Skipped$' \
  "$ROOT/build/$preset/Testing/Temporary/LastTest.log" |
  grep -av -e ': Skipped$' -e '^--$' | sort | uniq -c)" || true
[[ -z $skipped ]] || say "skipped, how many and why:"$'\n'"$skipped"
