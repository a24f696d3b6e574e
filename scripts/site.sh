#!/usr/bin/env bash
# Makes a static site of the documentation, which can be searched.
#
# Usage: scripts/site.sh [--out DIR] [--serve PORT]
#
#   --out DIR     where the site is put; build/site by default
#   --serve PORT  then serves it on loopback, until Ctrl-C
#
# All tracked pages are in it, with the links between them. Nothing is loaded
# from elsewhere. A page is opened by a browser from any web server; search
# takes one, too. Needs mkdocs (Debian: mkdocs).
#
# Exit code: 0 made, 1 failed, 2 wrong usage, 77 there is no mkdocs.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

out="$ROOT/build/site" port=''
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --out | --serve)
      [[ -n ${2-} ]] || usage_error "$1 needs a value"
      if [[ $1 == --out ]]; then out="$(realpath -m -- "$2")"; else port="$2"; fi
      shift
      ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ -z $port || $port =~ ^[0-9]+$ ]] || usage_error "--serve takes a port"
command -v mkdocs >/dev/null || {
  say "SKIPPED: there is no mkdocs (Debian: mkdocs)"
  exit 77
}
cd "$ROOT"
work="$(mktemp -d -t dfl-site.XXXXXX)"
trap 'rm -rf "$work"' EXIT
run python3 scripts/lib/site_source.py "$work" ||
  die "the pages cannot be put together, see above"
run mkdocs --quiet build --strict --clean --config-file "$work/mkdocs.yml" \
  --site-dir "$out" || die "mkdocs found something wrong, see above"
# A site that asks another server tells it who reads.
if grep -rlE '(src|href)="(https?:)?//[^"]*\.(js|css|woff2?)"' "$out" \
  --include='*.html' >&2; then
  die "these pages load something from elsewhere"
fi
pages="$(find "$out" -name '*.html' | wc -l)"
say "made ${out#"$ROOT/"}: $pages pages, $(du -sh "$out" | cut -f1)"
[[ -z $port ]] ||
  run python3 -m http.server --bind 127.0.0.1 --directory "$out" "$port"
