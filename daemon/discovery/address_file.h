// Candidate addresses from a file that somebody else keeps, such as a script
// or an orchestrator.
//
// One host:port a line; "#" begins a comment. The file is looked at every
// second. What cannot be read as a whole (it is missing, a line is no address,
// or it is too large) changes nothing: the last good list stays, and the
// trouble is told. An empty file is a list of nobody.
#ifndef DFL_DISCOVERY_ADDRESS_FILE_H_
#define DFL_DISCOVERY_ADDRESS_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/discovery/polled_source.h"
#include "daemon/discovery/resolver.h"
#include "daemon/discovery/source.h"

namespace dfl::discovery {

// A file may have this many addresses.
inline constexpr size_t kMostAddressesInFile = 10000;

// The addresses as they stand there.
// Errors: INVALID_ARGUMENT names the line, what was found and what is allowed.
absl::StatusOr<std::vector<std::string>> ParseAddressFile(
    absl::string_view text);

// Names in the file are resolved.
std::unique_ptr<Source> MakeFileSource(const std::string& path,
                                       Resolver resolver,
                                       PollPeriods periods = {
                                           absl::Seconds(1), absl::Seconds(1)});

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_ADDRESS_FILE_H_
