#!/usr/bin/env bash
# Installs the Debian packages that this project needs and the machine lacks.
#
# Usage: scripts/install-deps.sh [--list | --dry-run] [SECTION...]
#
#   SECTION     build, run, test, package, lint or arm64, see
#               scripts/packages.txt. Without any: all but arm64.
#   --list      prints the packages of the sections, one a line, and stops.
#   --dry-run   prints what would be installed, and stops.
#
# For Debian 12 (bookworm) and 13 (trixie). Needs root or sudo only if a
# package is missing. Exit code: 0 all is there, 1 something could not be
# installed (the cause is printed), 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

mode=install
sections=()
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --list) mode=list ;;
    --dry-run) mode=dry-run ;;
    build | run | test | package | lint | arm64) sections+=("$1") ;;
    -*) usage_error "unknown option '$1'; allowed: --list, --dry-run, --help" ;;
    *) usage_error "unknown section '$1'; allowed: build, run, test," \
      "package, lint, arm64" ;;
  esac
  shift
done
((${#sections[@]})) || sections=(build run test package lint)

# Prints the release as packages.txt's prefixes name it: debian12 or debian13.
release_name() {
  local ID='' VERSION_ID='' PRETTY_NAME=''
  if [[ -r /etc/os-release ]]; then
    # shellcheck source=/dev/null
    . /etc/os-release
  fi
  case "$ID$VERSION_ID" in
    debian12 | debian13) printf '%s' "$ID$VERSION_ID" ;;
    *) die "this is ${PRETTY_NAME:-${ID:-no known system}}, and the names in" \
      "scripts/packages.txt are those of Debian 12 and 13. Install their" \
      "counterparts by hand, then call scripts/test.sh or scripts/demo.sh" \
      "with --no-install" ;;
  esac
}

# packages RELEASE SECTION...: the names, sorted, each once.
packages() {
  awk -v release="$1" -v sections="${*:2}" '
    BEGIN { n = split(sections, s, " "); for (i = 1; i <= n; i++) on[s[i]] }
    /^# section: / { taken = ($3 in on); next }
    { sub(/#.*/, "") }
    !taken || NF == 0 { next }
    split($1, part, ":") == 2 { if (part[1] == release) print part[2]; next }
    { print $1 }
  ' "$ROOT/scripts/packages.txt" | LC_ALL=C sort -u
}

# missing PACKAGE...: those of them that are not installed.
missing() {
  LC_ALL=C comm -23 <(printf '%s\n' "$@") <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
      sed -n 's/^installed //p' | LC_ALL=C sort -u
  )
}

# without_candidate PACKAGE...: those that apt knows no version of.
without_candidate() {
  LC_ALL=C comm -23 <(printf '%s\n' "$@") <(
    LC_ALL=C apt-cache policy "$@" 2>/dev/null | awk '
      /^[^ ]+:$/ { name = substr($1, 1, length($1) - 1) }
      /^  Candidate:/ && $2 != "(none)" { print name }' | LC_ALL=C sort -u
  )
}

# cause: the likely reason for apt's failure, in one sentence.
cause() {
  local pattern reason
  while IFS='@' read -r pattern reason; do
    if grep -qE "$pattern" "$log"; then
      printf '%s' "$reason"
      return
    fi
  done <<'REASONS'
^sudo: |are you root@the rights are missing; run it as root, or as a user whom sudo lets in
Temporary failure resolving|Could not resolve@no name server answers; is this machine on a network?
Could not connect|Network is unreachable|[Cc]onnection timed out|Connection refused|Unable to connect|Connection failed@the package server cannot be reached; check the network and any proxy set in /etc/apt
No space left|have enough free space@the disk is full; all packages together take about 3 GB
Could not get lock|is another process using it@another package manager is running; wait for it to end, then try again
NO_PUBKEY|is not signed|EXPKEYSIG|is not valid yet@apt does not trust a source; check the clock and the keys in /etc/apt
dpkg was interrupted|unmet dependencies|held broken@the package database is inconsistent; try first: dpkg --configure -a && apt-get -f install
REASONS
  printf 'see the lines above'
}

release="$(release_name)"
mapfile -t wanted < <(packages "$release" "${sections[@]}")
if [[ $mode == list ]]; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi
mapfile -t lacking < <(missing "${wanted[@]}")
if ((${#lacking[@]} == 0)); then
  say "all ${#wanted[@]} packages of: ${sections[*]} are installed"
  exit 0
fi
say "lacks ${#lacking[@]} of ${#wanted[@]} packages of: ${sections[*]}"
printf '  %s\n' "${lacking[@]}" >&2
[[ $mode == install ]] || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    die "installing needs root, and there is no sudo here. As root:" \
      "apt-get install --no-install-recommends ${lacking[*]}"
  as_root=(sudo)
  # Nobody is there to be asked for a password.
  [[ -t 0 ]] || as_root+=(--non-interactive)
  say "uses sudo for apt-get, and for nothing else"
fi

log="$(mktemp -t dfl-install-deps.XXXXXX)"
trap 'rm -f "$log"' EXIT

# apt ARGUMENT...: apt-get; its output goes to the log, but for a line of
# progress each 10 %. The shell is there since sudo closes descriptors beyond
# standard error, and apt would close the one of its status for dpkg's scripts.
apt() {
  # shellcheck disable=SC2016
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    sh -c 'exec apt-get "$@" 3>&1' sh \
    -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
    -o APT::Status-Fd=3 -o Acquire::http::Timeout=30 -o Acquire::Retries=2 \
    "$@" </dev/null 2>&1 | show_progress
}

# Lines of apt's status are KIND:PACKAGE:PERCENT:TEXT.
show_progress() {
  local line kind percent text last=
  while IFS= read -r line; do
    IFS=: read -r kind _ percent text <<<"$line"
    case "$kind" in
      dlstatus) text=downloading ;;
      pmstatus) ;;
      *) printf '%s\n' "$line" >>"$log" && continue ;;
    esac
    percent="${percent%%.*}"
    if [[ "$kind$((percent / 10))" != "$last" ]]; then
      printf '  %3d %%  %s\n' "$percent" "$text" >&2
    fi
    last="$kind$((percent / 10))"
  done
}

# give_up TEXT...: shows apt's own complaints, keeps its whole output, and ends.
give_up() {
  grep -E -B 4 '^(E|W|Err|dpkg|sudo): ?|No space' "$log" | tail -n 20 >&2 ||
    true
  trap - EXIT
  say "apt's whole output is in $log"
  die "$*"
}

update() {
  say "asks the package servers what they have (apt-get update)"
  apt update || give_up "apt-get update failed: $(cause)"
}

# Lists are fetched when they don't know a package, or when what they know is
# no longer on the server.
mapfile -t unknown < <(without_candidate "${lacking[@]}")
updated=
if ((${#unknown[@]})); then
  update
  updated=1
  mapfile -t unknown < <(without_candidate "${lacking[@]}")
  if ((${#unknown[@]})); then
    if grep -qE '^(W|E|Err)' "$log"; then
      give_up "no package source offers ${unknown[*]}: $(cause)"
    fi
    die "no package source offers ${unknown[*]}. Debian's 'main' must be in" \
      "/etc/apt/sources.list or sources.list.d for ${release/debian/Debian }"
  fi
fi
say "installs them (apt-get install --no-install-recommends)"
if ! apt install --no-install-recommends "${lacking[@]}"; then
  if [[ -n $updated ]] || ! grep -q '404 ' "$log"; then
    give_up "apt-get install failed: $(cause)"
  fi
  update
  say "tries once more"
  apt install --no-install-recommends "${lacking[@]}" ||
    give_up "apt-get install failed: $(cause)"
fi
mapfile -t lacking < <(missing "${lacking[@]}")
((${#lacking[@]} == 0)) ||
  give_up "apt-get said it was done, yet these are missing: ${lacking[*]}"
say "installed"
