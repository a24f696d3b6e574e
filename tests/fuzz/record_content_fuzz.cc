// The orders that records carry: of a phase, a ban, to drain, of labels. The
// first byte says which.
#include <string>

#include "daemon/base/check.h"
#include "daemon/records/record_content.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

// An order that is taken is written and read again without a change.
template <typename Parse>
void CheckOrder(Parse parse, absl::string_view content) {
  const auto order = parse(content);
  if (!order.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(order.status()));
    return;
  }
  const std::string written = records::ToContent(*order);
  const auto again = parse(written);
  DFL_CHECK(again.ok() && records::ToContent(*again) == written);
}

}  // namespace

DFL_FUZZ_TARGET(record_content)(absl::string_view bytes) {
  Pieces pieces(bytes);
  const int kind = 1 + pieces.Byte() % 5;
  const absl::string_view content = pieces.Rest();
  switch (static_cast<records::RecordKind>(kind)) {
    case records::RecordKind::kPlan:
      (void)records::ValidateLabel(content);
      (void)records::PlanMark(content);
      break;
    case records::RecordKind::kPhase:
      CheckOrder(records::ParsePhaseOrder, content);
      break;
    case records::RecordKind::kBan:
      CheckOrder(records::ParseBanOrder, content);
      break;
    case records::RecordKind::kDrain:
      CheckOrder(records::ParseDrainOrder, content);
      break;
    case records::RecordKind::kLabels:
      CheckOrder(records::ParseLabelsOrder, content);
      break;
  }
  // It goes into the log, a line each.
  for (const char c : records::Summary(kind, content)) DFL_CHECK(c != '\n');
}

}  // namespace dfl::fuzz
