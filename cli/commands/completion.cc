// dflctl completion bash|zsh|fish: a script that has the program itself say
// what may come next, through the hidden
// `dflctl __complete WORD...` (completer.h).
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"

namespace dfl::cli {
namespace {

// Readline replaces only what stands behind the last = or :.
constexpr char kBash[] =
    R"sh(# bash: source <(dflctl completion bash)
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
)sh";

constexpr char kZsh[] = R"sh(#compdef dflctl
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
)sh";

constexpr char kFish[] =
    R"sh(# fish: dflctl completion fish | source
function __dflctl_complete
  set -l typed (commandline -opc) (commandline -ct)
  set -l lines ($typed[1] __complete $typed[2..-1] 2> /dev/null)
  set -q lines[1]; or return
  set -l last $lines[-1]
  set -e lines[-1]
  set -q lines[1]; and printf '%s\n' $lines
  if string match -q '*files*' -- $last
    __fish_complete_path (commandline -ct)
  end
end
complete -c dflctl -f -a '(__dflctl_complete)'
)sh";

}  // namespace

void AddCompletion(CLI::App& app, Chosen& chosen) {
  CLI::App* noun =
      AddCommand(app, "completion", "Completion for bash, zsh or fish", "bash");
  noun->require_subcommand(1);
  const auto add = [&](const char* shell, const char* example,
                       const char* script) {
    AddCommand(*noun, shell, absl::StrCat("For ", shell), example)
        ->callback([&chosen, script] {
          chosen = [script](Context& context) {
            context.io().out << script << std::flush;
            return kOk;
          };
        });
  };
  add("bash", "> ~/.dflctl.bash && source ~/.dflctl.bash", kBash);
  add("zsh", "> ~/.dflctl.zsh && source ~/.dflctl.zsh", kZsh);
  add("fish", "| source", kFish);
}

}  // namespace dfl::cli
