// The answers of daemons as JSON with raw numbers: bytes, seconds, shares.
#ifndef DFL_CLI_STATUS_JSON_H_
#define DFL_CLI_STATUS_JSON_H_

#include "cli/console.h"
#include "client/types.h"

namespace dfl::cli {

Json ToJsonValue(const client::KnobValue& value);
Json ToJsonValue(const client::PeerStatus& from);
Json ToJsonValue(const client::DaemonStatus& status);
Json ToJsonValue(const client::Event& event);
Json ToJsonValue(const client::ModelFacts& facts);
Json ToJsonValue(const client::PeerAddress& address);

}  // namespace dfl::cli

#endif  // DFL_CLI_STATUS_JSON_H_
