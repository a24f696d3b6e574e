// The configuration file of a node, with one file of conf.d behind it: what
// follows a line of dashes.
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/base/check.h"
#include "daemon/config/node_settings.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

constexpr absl::string_view kNextFile = "\n----\n";

config::SettingsSources SourcesOf(absl::string_view bytes) {
  const size_t at = bytes.find(kNextFile);
  config::SettingsSources sources;
  sources.files.push_back({"dfld.yaml", std::string(bytes.substr(0, at))});
  if (at != absl::string_view::npos) {
    sources.files.push_back(
        {"conf.d/a.yaml", std::string(bytes.substr(at + kNextFile.size()))});
  }
  sources.host_name = "box";
  return sources;
}

}  // namespace

DFL_FUZZ_TARGET(node_settings)(absl::string_view bytes) {
  static const size_t kSettings =
      config::LoadNodeSettings(SourcesOf(""))->effective.size();
  const auto loaded = config::LoadNodeSettings(SourcesOf(bytes));
  if (!loaded.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(loaded.status()));
    return;
  }
  DFL_CHECK(loaded->effective.size() == kSettings);
  for (const config::EffectiveSetting& setting : loaded->effective) {
    DFL_CHECK(!setting.key.empty() && !setting.origin.empty());
  }
  (void)config::CheckStartable(*loaded);
}

}  // namespace dfl::fuzz
