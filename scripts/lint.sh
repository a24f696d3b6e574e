#!/usr/bin/env bash
# Checks what the tests don't: layout, habits, contracts, layers.
#
# Usage: scripts/lint.sh [--changed] [--minutes N] [--fix] [--no-install]
#                        [CHECK...]
#
#   CHECK         without any, all of:
#     format        clang-format-19 of every .h and .cc (.clang-format); comments
#                   at most 80 columns wide
#     layers        rooms include lower rooms only, deterministic ones no clock,
#                   thread or foreign randomness (scripts/lint/layers.py)
#     proto         contracts: comments, packages, numbers
#                   (scripts/lint/protos.py), and buf where npx can get it
#     shell         shellcheck of every shell script
#     yaml          yamllint of every YAML file (.yamllint)
#     prose         Markdown: width, length of paragraphs, links
#                   (scripts/lint/markdown.py)
#     sizes         classes, functions and folders that are too large to be read
#                   (scripts/lint/sizes.py)
#     paths         no file names a folder of the machine it was written on
#     tidy          clang-tidy-19 of every source (.clang-tidy); needs build/dev.
#                   What passed is skipped until it changes.
#   --changed     tidy: only files that differ from the branch's upstream, or
#                 from the last commit if it has none.
#   --minutes N   tidy: begins with what was committed last and no file after N
#                 minutes; says how many it left for the next call.
#   --fix         format: rewrites the files instead; prose: fills paragraphs
#                 anew, and then checks.
#   --no-install  asks no package manager.
#
# All tracked files are checked. Exit code: 0 nothing found, 1 findings
# (printed), 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

readonly BUF_VERSION=1.75.0
readonly ALL=(format layers proto shell yaml prose sizes paths tidy)

checks=()
changed=
minutes=
fix=
install=1
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --changed) changed=1 ;;
    --minutes)
      [[ ${2-} =~ ^[0-9]+$ ]] ||
        usage_error "--minutes is '${2-}'; allowed: a number of minutes"
      minutes="$2"
      shift
      ;;
    --fix) fix=1 ;;
    --no-install) install= ;;
    format | layers | proto | shell | yaml | prose | paths | sizes | tidy)
      checks+=("$1")
      ;;
    *) usage_error "unknown argument '$1'; the checks are: ${ALL[*]}" ;;
  esac
  shift
done
((${#checks[@]})) || checks=("${ALL[@]}")

cd "$ROOT"
git rev-parse --is-inside-work-tree >/dev/null 2>&1 ||
  die "git does not take $ROOT for a repository (or not for yours); it tells" \
    "which files are to be checked"
[[ -z $install ]] || scripts/install-deps.sh lint

# tracked PATTERN...: tracked files that are there.
tracked() {
  local file
  git ls-files -- "$@" | while IFS= read -r file; do
    if [[ -f $file ]]; then printf '%s\n' "$file"; fi
  done
}

check_format() {
  local files
  mapfile -t files < <(tracked '*.h' '*.cc')
  printf '  %d files\n' "${#files[@]}"
  ((${#files[@]})) || return 0
  if [[ -n $fix ]]; then
    run clang-format-19 -i "${files[@]}"
  else
    run clang-format-19 --dry-run -Werror -ferror-limit=1 "${files[@]}" || {
      printf '  scripts/lint.sh --fix format puts them right\n'
      return 1
    }
  fi
  # It leaves comments as they are.
  if LC_ALL=C.UTF-8 grep -nE '^.{81,}$' "${files[@]}" |
    grep -E '^[^:]+:[0-9]+: *//'; then
    printf '  comments are at most 80 columns wide\n'
    return 1
  fi
}

check_layers() { run python3 scripts/lint/layers.py; }

check_proto() {
  run python3 scripts/lint/protos.py || return 1
  if ! command -v npx >/dev/null; then
    printf '  buf is skipped: there is no npx (package npm)\n'
    return 0
  fi
  local buf=(npx --yes "@bufbuild/buf@$BUF_VERSION") release
  # Outside of the repository, where no package.json can change the outcome.
  if ! (cd / && timeout 60 "${buf[@]}" --version) >/dev/null 2>&1 </dev/null
  then
    printf '  buf is skipped: npx cannot get @bufbuild/buf@%s\n' "$BUF_VERSION"
    return 0
  fi
  run "${buf[@]}" lint proto || return 1
  printf '  buf lint: well\n'
  release="$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)" || {
    printf '  buf breaking: nothing is released yet to compare with\n'
    return 0
  }
  run "${buf[@]}" breaking proto --against ".git#tag=$release,subdir=proto" ||
    return 1
  printf '  buf breaking: nothing that %s understands was changed\n' "$release"
}

check_shell() {
  local files=() file
  while IFS= read -r file; do
    if [[ $file == *.sh ]] ||
      head -c 64 "$file" | grep -aqE '^#!.*\b(ba|da)?sh\b'; then
      files+=("$file")
    fi
  done < <(tracked)
  printf '  %d files\n' "${#files[@]}"
  run shellcheck -x --source-path=SCRIPTDIR "${files[@]}"
}

check_yaml() {
  local files
  mapfile -t files < <(tracked '*.yaml' '*.yml')
  printf '  %d files\n' "${#files[@]}"
  ((${#files[@]} == 0)) || run yamllint --strict "${files[@]}"
}

check_prose() { run python3 scripts/lint/markdown.py ${fix:+--fix}; }

check_sizes() { run python3 scripts/lint/sizes.py; }

check_paths() {
  # The brackets keep this line from finding itself.
  if git grep -nIE '(^|[^[:alnum:]_.~-])/(wor[k]|roo[t])/'; then
    printf '  these lines name a folder of one machine\n'
    return 1
  fi
}

check_tidy() {
  local files=() base
  [[ -f build/dev/compile_commands.json ]] || configure dev
  # Headers that protoc makes must be there; nothing else is built.
  if grep -q '^build proto/libdfl_proto\.a:' build/dev/build.ninja; then
    run cmake --build build/dev --target proto/libdfl_proto.a >/dev/null || {
      printf '  the contracts do not compile: ninja -C build/dev dfl_proto\n'
      return 1
    }
  fi
  if [[ -n $changed ]]; then
    base="$(git merge-base HEAD '@{upstream}' 2>/dev/null || echo HEAD)"
    mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cc')
    if ((${#files[@]} == 0)); then
      printf '  no source differs from %s\n' "$base"
      return 0
    fi
  fi
  run python3 scripts/lint/clang_tidy.py ${minutes:+--minutes "$minutes"} \
    build/dev "${files[@]}"
}

failed=()
for check in "${checks[@]}"; do
  say "$check"
  started=$SECONDS
  if ! "check_$check"; then
    failed+=("$check")
    say "$check FAILED after $((SECONDS - started)) s"
  fi
done
((${#failed[@]} == 0)) || die "findings in: ${failed[*]}, see above"
say "nothing found by: ${checks[*]}"
