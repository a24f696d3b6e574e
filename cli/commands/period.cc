// dflctl period show|set: how often nodes exchange.
#include "cli/commands.h"
#include "cli/knob_noun.h"

namespace dfl::cli {

void AddPeriod(CLI::App& app, Chosen& chosen) {
  AddKnobNoun(app, "period", "How many steps lie between two exchanges",
              "kappa=5..10", core::KnobNoun::kPeriod, chosen);
}

}  // namespace dfl::cli
