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

// The knobs of one noun: values of `plan` (null: the defaults), ranges, what
// single nodes have instead.
Json KnobsJson(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
               const core::RunPlan* plan);
Table KnobsTable(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
                 const core::RunPlan* plan);

// All algorithms: each as AlgorithmJson has it without a plan; a line each.
Json CatalogueJson();
std::string CatalogueText();

// One algorithm with source, costs, caveats and all knobs. `program` is the one
// whose commands set the knobs; "": none does.
Json AlgorithmJson(const core::AlgorithmInfo& info, const core::RunPlan* plan);
std::string AlgorithmText(const core::AlgorithmInfo& info,
                          const core::RunPlan* plan,
                          const std::string& program);

// Every knob of `noun` that there is, what it may be, and whose it is.
std::string KnobsHelp(core::KnobNoun noun);

// The whole catalogue as a page: docs/algorithms.md.
std::string CatalogueMarkdown();

}  // namespace dfl::console

#endif  // DFL_CONSOLE_CATALOGUE_H_
