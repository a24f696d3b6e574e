#!/usr/bin/env bash
# Builds the fuzz targets and runs each of them for a while: a decoder is given
# bytes that libFuzzer makes up, under ASan and UBSan.
#
# Usage: scripts/fuzz.sh [--seconds N] [--jobs N] [--no-install] [TARGET...]
#
#   TARGET         some of those that tests/fuzz/README.md lists; without any:
#                  all of them.
#   --seconds N    how long each target runs: 600 by default.
#   --jobs N       how many run at the same time: 1 by default. Each may take
#                  2 GB.
#   --no-install   asks no package manager; the build then tells what it lacks.
#
# A target begins with tests/fuzz/corpus/TARGET and with what earlier runs have
# found out, which is in build/fuzz/corpus/TARGET. Inputs that break it are kept
# in build/fuzz/crashes/TARGET, and its output in build/fuzz/logs/TARGET.log.
# Needs clang-19, and root or sudo only to install packages. Exit code:
# 0 nothing was found, 1 a finding or a failed build, 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

# Of one input: seconds, and MB of memory.
readonly TIMEOUT=20
readonly MEMORY=2048

seconds=600
jobs=1
install=1
targets=()
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --seconds | --jobs)
      (($# > 1)) || usage_error "$1 needs a value"
      set -- "$1=$2" "${@:3}"
      continue
      ;;
    --seconds=*) seconds="${1#*=}" ;;
    --jobs=*) jobs="${1#*=}" ;;
    --no-install) install= ;;
    -*) usage_error "unknown option '$1'" ;;
    *)
      [[ -f $ROOT/tests/fuzz/${1}_fuzz.cc ]] ||
        usage_error "there is no target '$1'; tests/fuzz/README.md lists them"
      targets+=("$1")
      ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] ||
  usage_error "--seconds is '$seconds'; allowed: 1 or more"
[[ $jobs =~ ^[1-9][0-9]*$ ]] ||
  usage_error "--jobs is '$jobs'; allowed: 1 or more"
if ((${#targets[@]} == 0)); then
  for source in "$ROOT"/tests/fuzz/*_fuzz.cc; do
    targets+=("$(basename "$source" _fuzz.cc)")
  done
fi

# fuzz_one TARGET: runs it. Fails on a finding, and says how to replay it.
fuzz_one() {
  local target="$1" status=0 input
  local folder="$ROOT/build/fuzz"
  local log="$folder/logs/$target.log" crashes="$folder/crashes/$target"
  local program="$folder/tests/fuzz/fuzz_$target"
  local words="$ROOT/tests/fuzz/dictionaries/$target.dict"
  local options=("-max_total_time=$SECONDS_EACH" "-timeout=$TIMEOUT"
    "-rss_limit_mb=$MEMORY" "-artifact_prefix=$crashes/")
  [[ ! -f $words ]] || options+=("-dict=$words")
  mkdir -p "$folder/corpus/$target" "$crashes" "$folder/logs"
  touch "$crashes/.begun"
  printf '  %s begins\n' "$target" >&2
  "$program" "${options[@]}" "$folder/corpus/$target" \
    "$ROOT/tests/fuzz/corpus/$target" >"$log" 2>&1 || status=$?
  if ((status == 0)); then
    printf '  %s: nothing found; %s\n' "$target" \
      "$(grep -a '^Done ' "$log" | tail -n 1)" >&2
    return 0
  fi
  printf '  %s: FOUND something (exit code %d), see %s\n' \
    "$target" "$status" "$log" >&2
  grep -aE -m 3 'ERROR: |runtime error: |check failed: |^SUMMARY: ' \
    "$log" >&2 || tail -n 5 "$log" >&2
  while IFS= read -r input; do
    printf '  replay it: %s %s\n' "$program" "$input" >&2
  done < <(find "$crashes" -type f -newer "$crashes/.begun")
  return 1
}
export ROOT TIMEOUT MEMORY
export SECONDS_EACH="$seconds"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
export -f fuzz_one

[[ -z $install ]] || "$ROOT/scripts/install-deps.sh" build lint
configure fuzz
build fuzz "${targets[@]/#/fuzz_}"
list="$ROOT/build/fuzz/targets"
printf '%s\n' "${targets[@]}" >"$list"
say "runs ${#targets[@]} targets, $seconds s each"
# shellcheck disable=SC2016
run xargs --arg-file="$list" --max-args=1 --max-procs="$jobs" \
  bash -c 'fuzz_one "$1"' bash ||
  die "there are findings, see above. A fix keeps the input as a file of" \
    "tests/fuzz/corpus/TARGET"
say "nothing was found"
