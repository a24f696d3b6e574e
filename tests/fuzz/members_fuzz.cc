// News of members, frame by frame, in the table of a node that is none of them.
#include <cstdint>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/membership/member_table.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

namespace pb = ::dfl::peer::v1;
using runtime::MemberTable;

// A new member with more starts than this is not believed.
constexpr uint64_t kMostStarts = uint64_t{1} << 52;

// What the table says can be told to others, who then know the same of those
// that are present.
void CheckTable(const MemberTable& table, absl::Time now) {
  MemberTable other;
  int64_t present = 0;
  bool believable = true;
  for (const auto& [node, member] : table.members()) {
    const ports::MemberUpdate statement = table.StatementOn(node);
    DFL_CHECK(ports::ValidateFrame(ports::MembersFrame{{statement}}).ok());
    present += member.present() ? 1 : 0;
    believable = believable && member.incarnation.starts <= kMostStarts;
    (void)other.Merge(statement, now);
    (void)other.Merge(statement, now);
  }
  DFL_CHECK(table.present() == present && table.digest() != 0);
  DFL_CHECK(table.members().size() <= runtime::kMostMembers);
  if (!believable) return;
  DFL_CHECK(other.present() == present && other.buckets() == table.buckets());
  DFL_CHECK(other.digest() == table.digest());
}

}  // namespace

DFL_FUZZ_TARGET(members)(absl::string_view bytes) {
  Pieces pieces(bytes);
  MemberTable table;
  absl::Time now = absl::UnixEpoch();
  while (!pieces.empty()) {
    now += absl::Seconds(pieces.Byte());
    const absl::string_view part = pieces.Part();
    pb::ControlFrame message;
    if (!message.ParseFromArray(part.data(), static_cast<int>(part.size()))) {
      continue;
    }
    const auto frame = exchange::FromProto(&message);
    if (!frame.ok()) continue;
    const auto* members = std::get_if<ports::MembersFrame>(&*frame);
    if (members == nullptr) continue;
    for (const ports::MemberUpdate& update : members->members) {
      (void)table.Merge(update, now);
    }
    CheckTable(table, now);
    (void)table.Forget(now - absl::Minutes(1));
    CheckTable(table, now);
  }
}

}  // namespace dfl::fuzz
