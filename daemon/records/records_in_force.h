// What the records of a book say together.
#ifndef DFL_RECORDS_RECORDS_IN_FORCE_H_
#define DFL_RECORDS_RECORDS_IN_FORCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/runtime/gossip/record.h"
#include "daemon/runtime/gossip/record_book.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/tls/identity.h"

namespace dfl::records {

// All who are shut out, by their identity as text.
std::vector<tls::Identity> BannedBy(const runtime::RecordBook& book);

struct WantedPhase {
  runtime::DesiredPhase phase = runtime::DesiredPhase::kIdle;
  std::string run_id;    // it is wanted in this run only
  uint64_t counter = 0;  // of the record that says it
  std::string hash;      // of its body
};

using Labels = std::map<std::string, std::string>;

// What the node `node` with `labels` shall do; none: no record says.
std::optional<WantedPhase> PhaseWantedOf(const runtime::RecordBook& book,
                                         absl::string_view node,
                                         const Labels& labels);

// Why the node `node` shall drain, "" where nobody says; none: it shall not.
std::optional<std::string> DrainWantedOf(const runtime::RecordBook& book,
                                         absl::string_view node);

// The labels that a record gives the node `node`; none: those of its settings.
std::optional<Labels> LabelsOf(const runtime::RecordBook& book,
                               absl::string_view node);

// The plan that counts; its content is the YAML. Null: none.
std::shared_ptr<const runtime::Record> NewestPlan(
    const runtime::RecordBook& book);

}  // namespace dfl::records

#endif  // DFL_RECORDS_RECORDS_IN_FORCE_H_
