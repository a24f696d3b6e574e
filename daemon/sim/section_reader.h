// Reads the sections of a scenario: values within bounds, and names of nodes as
// places of members. Mistakes go to the YamlReader, each with its line.
#ifndef DFL_SIM_SECTION_READER_H_
#define DFL_SIM_SECTION_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::sim {

// If a value is absent, or not allowed (a mistake), `out` does not change.
class SectionReader {
 public:
  // `yaml` must outlive it.
  SectionReader(config::YamlReader& yaml,
                const std::vector<core::MemberSpec>& members);

  config::YamlReader& yaml() { return yaml_; }
  // The names of the members, sorted.
  const std::vector<std::string>& names() const { return names_; }

  // An integer >= 1.
  void Count(const config::YamlNode& section, absl::string_view path,
             absl::string_view key, int64_t& out);
  // A finite duration >= `least`, which is 0 or as good as 0.
  void Time(const config::YamlNode& section, absl::string_view path,
            absl::string_view key, absl::Duration least, absl::Duration& out);
  // A number >= 0, a number > 0, and a number in [0, 1).
  void AtLeastZero(const config::YamlNode& section, absl::string_view path,
                   absl::string_view key, double& out);
  void AboveZero(const config::YamlNode& section, absl::string_view path,
                 absl::string_view key, double& out);
  void Probability(const config::YamlNode& section, absl::string_view path,
                   absl::string_view key, double& out);

  // The place of the named member; -1, and a mistake, if there is none.
  int64_t Member(const config::YamlNode& node, const std::string& path);
  int64_t Place(const std::string& name, int line, const std::string& path);
  // Two different members.
  std::optional<std::pair<int64_t, int64_t>> Pair(const config::YamlNode& node,
                                                  const std::string& path);

 private:
  void Bounded(const config::YamlNode& section, absl::string_view path,
               absl::string_view key, bool (*fits)(double),
               absl::string_view allowed, double& out);

  config::YamlReader& yaml_;
  std::vector<std::string> names_;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_SECTION_READER_H_
