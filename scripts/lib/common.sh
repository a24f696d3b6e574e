# shellcheck shell=bash
# Common to the scripts: messages with the time since the start, a cause for
# every failure, and an end to whatever runs on Ctrl-C. To be sourced first.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
PROGRAM="$(basename "$0")"

# say TEXT...: one line of progress. On standard error, where package managers
# and compilers complain too, so that the order of lines stays true.
say() {
  printf '%s [%d:%02d] %s\n' \
    "$PROGRAM" "$((SECONDS / 60))" "$((SECONDS % 60))" "$*" >&2
}

# die TEXT...: what failed, why, what to do next. Exit code 1.
die() {
  printf '%s: error: %s\n' "$PROGRAM" "$*" >&2
  exit 1
}

# usage_error TEXT...: a wrong command line. Exit code 2.
usage_error() {
  printf '%s: %s\nTry: %s --help\n' "$PROGRAM" "$*" "$0" >&2
  exit 2
}

# show_help: prints the comment at the top of the script, without the shebang.
show_help() {
  sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$0"
}

# run COMMAND...: waits for a command that has a process group of its own, so
# that all it started ends with this script: at once, on Ctrl-C and SIGTERM.
# The command's standard input is empty. Returns its exit code.
RUNNING=
run() {
  local status=0
  set -m
  "$@" </dev/null &
  RUNNING=$!
  set +m
  wait "$RUNNING" || status=$?
  RUNNING=
  return "$status"
}

stop_on_signal() {
  local signal="$1" tries=0
  # Whoever read the output may have ended first.
  trap '' INT TERM HUP PIPE
  if [[ -n "$RUNNING" ]]; then
    kill -TERM -- "-$RUNNING" 2>/dev/null || true
    while kill -0 -- "-$RUNNING" 2>/dev/null; do
      if ((++tries > 100)); then
        kill -KILL -- "-$RUNNING" 2>/dev/null || true
        break
      fi
      sleep 0.1
    done
    say "stopped by SIG$signal, ended what it had started" 2>/dev/null || true
  fi
  exit $((128 + $(kill -l "$signal")))
}
trap 'stop_on_signal INT' INT
trap 'stop_on_signal TERM' TERM
trap 'stop_on_signal HUP' HUP

# configure PRESET [CMAKE-ARGUMENT...]: makes build/PRESET; says more only if
# that fails.
configure() {
  local preset="$1" log="build/$1-configure.log"
  shift
  mkdir -p "$ROOT/build"
  say "configures build/$preset"
  command -v cmake >/dev/null ||
    die "there is no cmake; scripts/install-deps.sh build installs it"
  if ! run cmake -S "$ROOT" --preset "$preset" "$@" >"$ROOT/$log" 2>&1; then
    tail -n 40 "$ROOT/$log" >&2
    die "cmake could not configure build/$preset, see above ($log has all of" \
      "it). If a package is missing: scripts/install-deps.sh build"
  fi
}

# build PRESET [TARGET...]: all targets, or these; progress is ninja's own.
build() {
  local preset="$1" started=$SECONDS
  shift
  say "builds ${*:-everything} in build/$preset"
  if ! NINJA_STATUS='[%f/%t, %es] ' run \
    cmake --build "$ROOT/build/$preset" ${1:+--target "$@"}; then
    die "the build in build/$preset failed, see its first error above"
  fi
  say "built in $((SECONDS - started)) s"
}
