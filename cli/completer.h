// What may come next on a command line that is being typed: commands, flags,
// and the names that there are now, such as those of nodes, knobs and contexts.
#ifndef DFL_CLI_COMPLETER_H_
#define DFL_CLI_COMPLETER_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/console.h"

namespace dfl::cli {

// The hidden command whose words are the line that is being typed.
inline constexpr char kCompleteCommand[] = "__complete";

// A person waits for what the shell offers, so the program ends after this time
// in any case.
inline constexpr absl::Duration kCompletionTime = absl::Milliseconds(950);

struct Completion {
  struct Word {
    std::string text;
    std::string help;  // "": none
  };
  std::vector<Word> words;  // all begin with what is typed
  bool files = false;       // names of files may come here, too
  bool open = false;        // more is typed right behind a word: "nu="
};

// `app` is dflctl's parser, which parses nothing here. `typed` is what stands
// behind "dflctl"; its last word is the one being typed, "" where none has
// begun.
// Names that only a daemon knows are asked of the first target that the line,
// the environment or a context names; where nobody answers they are left out.
// Says nothing on any stream of `io`.
Completion Complete(const CLI::App& app, const std::vector<std::string>& typed,
                    Io& io);

// A line "WORD\tHELP" for each word, and a last one ":" with "files" and
// "open", as the scripts of `dflctl completion` read it.
std::string CompletionText(const Completion& completion);

}  // namespace dfl::cli

#endif  // DFL_CLI_COMPLETER_H_
