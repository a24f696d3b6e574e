// dflctl participation show|set, period show|set: how much of the network takes
// part in an exchange, and how often nodes exchange.
#include "cli/commands.h"
#include "cli/knob_noun.h"

namespace dfl::cli {

void AddParticipation(CLI::App& app, Chosen& chosen) {
  AddKnobNoun(app, "participation",
              "Shares of neighbours and coordinates that take part",
              "nu=0.5 p=0.1", core::KnobNoun::kParticipation, chosen);
}

void AddPeriod(CLI::App& app, Chosen& chosen) {
  AddKnobNoun(app, "period", "How many steps lie between two exchanges",
              "kappa=5..10", core::KnobNoun::kPeriod, chosen);
}

}  // namespace dfl::cli
