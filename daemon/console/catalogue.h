// The catalogue of algorithms and their knobs, for people and for programs.
#ifndef DFL_CONSOLE_CATALOGUE_H_
#define DFL_CONSOLE_CATALOGUE_H_

#include <string>

#include "daemon/console/document.h"
#include "daemon/console/table.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::console {

// "algorithm", "participation", "period".
const char* NounName(core::KnobNoun noun);

// The knobs of one noun: the values of `plan` (null: the defaults), the allowed
// ranges, and the values of single nodes that differ.
Json KnobsJson(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
               const core::RunPlan* plan);
Table KnobsTable(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
                 const core::RunPlan* plan);

// All algorithms: as AlgorithmJson without a plan; as text, a line each.
Json CatalogueJson();
std::string CatalogueText();

// One algorithm with source, costs, caveats and all knobs. `program` is the
// program whose commands set the knobs; "": no program does.
Json AlgorithmJson(const core::AlgorithmInfo& info, const core::RunPlan* plan);
std::string AlgorithmText(const core::AlgorithmInfo& info,
                          const core::RunPlan* plan,
                          const std::string& program);

// Every knob of `noun`, with its allowed values and its algorithms.
std::string KnobsHelp(core::KnobNoun noun);

// The whole catalogue as a page: docs/algorithms.md.
std::string CatalogueMarkdown();

}  // namespace dfl::console

#endif  // DFL_CONSOLE_CATALOGUE_H_
