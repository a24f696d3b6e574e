// What is amiss between nodes, out of what each says of itself and of the
// others: the network's half of `dflctl doctor`.
#ifndef DFL_CLI_SUPPORT_NETWORK_FINDINGS_H_
#define DFL_CLI_SUPPORT_NETWORK_FINDINGS_H_

#include <vector>

#include "cli/network/survey.h"
#include "client/types.h"

namespace dfl::cli {

// One finding at least for each of: members, ways out (this node reaches
// others), ways in (others reach this node), certificates, versions, plans,
// data contract.
// "This node" is the one that answered for the network.
std::vector<client::Finding> NetworkFindings(const Survey& survey);

// How far the daemon's clock is from ours, which was `sent` and `received`
// nanoseconds since 1970 when the question left and the answer was here.
client::Finding ClockFinding(int64_t daemon_nanos, int64_t sent,
                             int64_t received);

// What to do about a daemon that does not answer dflctl itself.
client::Finding UnreachableFinding(const absl::Status& status);

}  // namespace dfl::cli

#endif  // DFL_CLI_SUPPORT_NETWORK_FINDINGS_H_
