# fish: dflctl completion fish | source
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
