#!/usr/bin/env bash
# Searches all states of a model within bounds, by spin.
#
# Usage: tests/model/check.sh MODEL [-DNAME=VALUE...] [--cycles] [--large]
#                             [--mbytes N] [--seconds N] [--trace]
#                             expect-ok|expect-fault
#
#   MODEL         parcels or membership: MODEL.pml beside this script
#   -DNAME=VALUE  bounds and planted faults; the head of the model lists them
#   --cycles      also looks for runs that never end
#   --large       optimises the search, which pays from a million states on
#   --mbytes N    of memory at most (1000)
#   --seconds N   of processor time at most (60)
#   --trace       prints the steps to the fault that is found
#   expect-ok     passes if the search is complete, finds nothing, and reaches
#                 every statement of the model but those that say "unreached:"
#   expect-fault  passes if a property is violated
#
# Exit code: 0 as expected, 1 not so (the cause is printed), 2 wrong usage, 77
# there is no spin.
set -euo pipefail

die() {
  printf 'check.sh: error: %s\n' "$*" >&2
  exit 1
}
usage_error() {
  printf 'check.sh: %s\nTry: %s --help\n' "$*" "$0" >&2
  exit 2
}

folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
model=
expected=
bounds=()
cycles=
optimise=-O0
mbytes=1000
seconds=60
trace=
while (($#)); do
  case "$1" in
    -h | --help)
      sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    -D?*) bounds+=("$1") ;;
    --cycles) cycles=1 ;;
    --large) optimise=-O2 ;;
    --trace) trace=1 ;;
    --mbytes | --seconds)
      [[ ${2-} =~ ^[1-9][0-9]*$ ]] ||
        usage_error "$1 is '${2-}'; allowed: 1 or more"
      if [[ $1 == --mbytes ]]; then mbytes="$2"; else seconds="$2"; fi
      shift
      ;;
    expect-ok | expect-fault) expected="$1" ;;
    *)
      [[ -z $model && -f $folder/$1.pml ]] ||
        usage_error "unknown argument '$1'"
      model="$folder/$1.pml"
      ;;
  esac
  shift
done
[[ -n $model ]] || usage_error "no model"
[[ -n $expected ]] || usage_error "neither expect-ok nor expect-fault"

if ! command -v spin >/dev/null; then
  # scripts/test.sh shows the line after this one.
  printf 'tests/model/check.sh: Skipped\n'
  printf 'there is no spin (package spin), which searches the models\n'
  exit 77
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$model" .
model="$(basename "$model")"
for bound in "${bounds[@]}"; do
  name="${bound#-D}"
  grep -qE "^#ifn?def ${name%%=*}\$" "$model" ||
    usage_error "$model has no bound '${name%%=*}'"
done
spin "${bounds[@]}" -a "$model" >spin.log 2>&1 ||
  die "spin does not take the model: $(<spin.log)"

# Every step touches what all processes see, so there is nothing to reduce.
options=("$optimise" -w -DNOREDUCE "-DMEMLIM=$mbytes")
search=(-m100000 -w20)
if [[ -n $cycles ]]; then
  # No state is marked as progress: every cycle is one without.
  options+=(-DNP)
  search+=(-l)
else
  options+=(-DSAFETY)
fi
cc "${options[@]}" -o pan pan.c 2>cc.log ||
  die "the search does not compile: $(<cc.log)"
status=0
TIMEFORMAT='%U s of processor time'
# shellcheck disable=SC2016
{
  time bash -c 'ulimit -t "$1" && exec "${@:2}" >pan.log 2>&1' \
    bash "$seconds" ./pan "${search[@]}" </dev/null
} 2>time.log || status=$?

# fail TEXT: what is not as expected, and what the search said.
fail() {
  cat pan.log
  die "$model ${bounds[*]}: $*"
}

printf '%s %s\n' "$model" "${bounds[*]}"
grep -E '^pan:[0-9]+:|errors:|states, stored|total actual' pan.log || true
tail -n 1 time.log
if [[ -n $trace ]]; then
  spin "${bounds[@]}" -t -p -g -k "$model.trail" "$model" ||
    die "there are no steps to print"
fi

case "$expected" in
  expect-fault)
    grep -qE '^pan:1: (assertion violated|non-progress cycle)' pan.log ||
      fail "no property is violated (exit code $status)"
    ;;
  expect-ok)
    ! grep -qE 'Search not completed|out of memory|too small' pan.log ||
      ! grep -q 'errors: 0$' pan.log ||
      fail "the search is not complete: more --mbytes, or smaller bounds"
    ((status < 128)) ||
      fail "the search took more than $seconds s of processor time"
    grep -q ', errors: 0$' pan.log ||
      fail "the search found an error; --trace prints the steps to it"
    # A model that cannot get there shows nothing.
    while IFS= read -r place; do
      line="$(sed -n "${place##*:}p" "$model")"
      [[ $line == *unreached:* ]] || fail "$place is never reached: $line"
    done < <(sed -n '/^unreached in claim/,/states)$/d
                     /"-end-"/d
                     s/^\t\(.*:[0-9]*\), state .*/\1/p' pan.log)
    ;;
esac
