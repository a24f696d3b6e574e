# bash: source <(dflctl completion bash)
_dflctl() {
  local line="${COMP_LINE:0:COMP_POINT}" cur="${COMP_WORDS[COMP_CWORD]}" last
  local -a typed lines files
  read -ra typed <<< "$line"
  [[ $line == *[[:space:]] ]] && typed+=("")
  mapfile -t lines < <("${typed[0]}" __complete "${typed[@]:1}" 2> /dev/null)
  ((${#lines[@]})) || return 0
  last="${lines[-1]}"
  unset 'lines[-1]'
  lines=("${lines[@]%%$'\t'*}")
  [[ $cur == [=:] ]] && cur=
  COMPREPLY=("${lines[@]#"${typed[-1]%"$cur"}"}")
  if [[ $last == *files* ]]; then
    mapfile -t files < <(compgen -f -- "$cur")
    COMPREPLY+=("${files[@]}")
    compopt -o filenames 2> /dev/null || true
  fi
  [[ $last != *open* ]] || compopt -o nospace 2> /dev/null || true
  return 0
}
complete -F _dflctl dflctl
