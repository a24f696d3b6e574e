#include "daemon/discovery/address_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/host_port.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/discovery/names.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::discovery {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
// The file is read more often than names are asked for.
constexpr absl::Duration kBetweenNames = absl::Seconds(10);

// What the looks at one file remember; they come one after the other.
class WatchedFile {
 public:
  WatchedFile(std::string path, Resolver resolver)
      : path_(std::move(path)), resolver_(std::move(resolver)) {}

  Findings Look() {
    const std::vector<std::string> before = good_;
    const absl::Status read = Read();
    if (good_ != before || !named_.trouble.empty() ||
        SteadyNow() - named_at_ >= kBetweenNames) {
      named_at_ = SteadyNow();
      named_ = ResolveNames(good_, resolver_, resolved_);
    }
    Findings findings = named_;
    if (!read.ok()) {
      findings.trouble = absl::StrCat(
          read.message(), "; the last good list stays in force (", good_.size(),
          good_.size() == 1 ? " address)" : " addresses)");
    }
    return findings;
  }

 private:
  absl::Status Read() {
    const auto text = config::ReadTextFile(path_, kMostBytes);
    if (!text.ok()) return text.status();
    // A file that is being written is taken once it is the same twice.
    const bool settled = first_ || *text == last_;
    first_ = false;
    last_ = *text;
    if (!settled) return absl::OkStatus();
    auto parsed = ParseAddressFile(*text);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ":", parsed.status().message()));
    }
    good_ = *std::move(parsed);
    return absl::OkStatus();
  }

  const std::string path_;
  const Resolver resolver_;
  bool first_ = true;
  std::string last_;
  std::vector<std::string> good_;
  std::map<std::string, Resolved> resolved_;
  Findings named_;  // what the names had last
  absl::Time named_at_ = absl::InfinitePast();
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseAddressFile(
    absl::string_view text) {
  std::vector<std::string> addresses;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto address = ParseHostPort(line);
    const bool reachable =
        address.ok() && address->port != 0 && !IsWildcard(address->host);
    if (!reachable) {
      constexpr size_t kMostQuoted = 60;
      return absl::InvalidArgumentError(absl::StrCat(
          number, ": found \"",
          absl::Utf8SafeCEscape(line.substr(0, kMostQuoted)), "\": ",
          address.ok() ? "that cannot be dialled" : address.status().message(),
          "; allowed: one host:port a line, and comments after #"));
    }
    if (addresses.size() == kMostAddressesInFile) {
      return absl::InvalidArgumentError(
          absl::StrCat(number, ": found more than ", kMostAddressesInFile,
                       " addresses; allowed: so many"));
    }
    addresses.push_back(address->ToString());
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()),
                  addresses.end());
  return addresses;
}

std::unique_ptr<Source> MakeFileSource(const std::string& path,
                                       Resolver resolver, PollPeriods periods) {
  auto file = std::make_shared<WatchedFile>(path, std::move(resolver));
  return std::make_unique<PolledSource>(
      "file", [file] { return file->Look(); }, periods);
}

}  // namespace dfl::discovery
