#compdef dflctl
# zsh: source <(dflctl completion zsh)
_dflctl() {
  local line last
  local -a lines texts shown behind
  line="$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)"
  lines=("${(@f)line}")
  (( ${#lines} )) || return 1
  last="${lines[-1]}"
  lines[-1]=()
  for line in $lines; do
    texts+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  -- }")
  done
  [[ $last == *open* ]] && behind=(-S '')
  (( ${#texts} )) && compadd "${behind[@]}" -l -d shown -a texts
  [[ $last == *files* ]] && _files
  return 0
}
if [[ $funcstack[1] == _dflctl ]]; then
  _dflctl "$@"
else
  compdef _dflctl dflctl
fi
