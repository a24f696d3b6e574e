// dflctl participation show|set: how much of the network takes part.
#include "cli/commands.h"
#include "cli/knob_noun.h"

namespace dfl::cli {

void AddParticipation(CLI::App& app, Chosen& chosen) {
  AddKnobNoun(app, "participation",
              "Shares of neighbours and coordinates that take part",
              "nu=0.5 p=0.1", core::KnobNoun::kParticipation, chosen);
}

}  // namespace dfl::cli
