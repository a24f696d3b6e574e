// The status of another node, which its daemon sends as an answer to a query:
// as the client reads it and dflctl shows it.
#include <string>

#include "cli/console.h"
#include "cli/status_json.h"
#include "cli/status_table.h"
#include "client/proto_types.h"
#include "daemon/base/check.h"
#include "dfl/control/v1/control.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(member_status)(absl::string_view bytes) {
  dfl::control::v1::MemberReport report;
  if (!report.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  const client::DaemonStatus status = client::FromProto(report.status());
  for (const bool wide : {false, true}) {
    cli::Table table(cli::StatusTitles(wide));
    table.Add(cli::StatusRow(status, wide));
    // A title and a row; nothing that a terminal would obey.
    int lines = 0;
    for (const char c : table.ToString()) {
      DFL_CHECK(c != '\x1b' && c != '\r');
      lines += c == '\n' ? 1 : 0;
    }
    DFL_CHECK(lines <= 2);
  }
  (void)cli::StatusNotes(status);
  (void)cli::PeerTable(status.node.peers).ToString();
  DFL_CHECK(!cli::ToJsonValue(status).dump().empty());
}

}  // namespace dfl::fuzz
