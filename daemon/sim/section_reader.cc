#include "daemon/sim/section_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/values.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::sim {

using config::YamlNode;

SectionReader::SectionReader(config::YamlReader& yaml,
                             const std::vector<core::MemberSpec>& members)
    : yaml_(yaml) {
  names_.reserve(members.size());
  for (const core::MemberSpec& member : members) {
    names_.push_back(member.node.name());
  }
}

void SectionReader::Count(const YamlNode& section, absl::string_view path,
                          absl::string_view key, int64_t& out) {
  yaml_.Scalar(
      section, path, key,
      [](absl::string_view text) -> std::optional<int64_t> {
        const std::optional<int64_t> number = config::ReadInteger(text);
        return number.has_value() && *number >= 1 ? number : std::nullopt;
      },
      "an integer >= 1", out);
}

void SectionReader::Time(const YamlNode& section, absl::string_view path,
                         absl::string_view key, absl::Duration least,
                         absl::Duration& out) {
  yaml_.Scalar(
      section, path, key,
      [least](absl::string_view text) -> std::optional<absl::Duration> {
        const std::optional<absl::Duration> time = config::ReadDuration(text);
        if (!time.has_value() || *time < least ||
            *time == absl::InfiniteDuration()) {
          return std::nullopt;
        }
        return time;
      },
      absl::StrCat("a duration ",
                   least > absl::ZeroDuration() ? "above 0" : "from 0s on",
                   " with its unit, such as 500ms, 2s or 1h30m"),
      out);
}

void SectionReader::Bounded(const YamlNode& section, absl::string_view path,
                            absl::string_view key, bool (*fits)(double),
                            absl::string_view allowed, double& out) {
  yaml_.Scalar(
      section, path, key,
      [fits](absl::string_view text) -> std::optional<double> {
        const std::optional<double> number = config::ReadNumber(text);
        return number.has_value() && fits(*number) ? number : std::nullopt;
      },
      allowed, out);
}

void SectionReader::AtLeastZero(const YamlNode& section, absl::string_view path,
                                absl::string_view key, double& out) {
  Bounded(
      section, path, key, [](double x) { return x >= 0; }, "a number >= 0",
      out);
}

void SectionReader::AboveZero(const YamlNode& section, absl::string_view path,
                              absl::string_view key, double& out) {
  Bounded(
      section, path, key, [](double x) { return x > 0; }, "a number > 0", out);
}

void SectionReader::Probability(const YamlNode& section, absl::string_view path,
                                absl::string_view key, double& out) {
  Bounded(
      section, path, key, [](double x) { return x >= 0 && x < 1; },
      "a probability in [0, 1)", out);
}

int64_t SectionReader::Member(const YamlNode& node, const std::string& path) {
  const std::optional<NodeId> name = yaml_.Name(node, path);
  if (!name.has_value()) return -1;
  return Place(name->name(), node.line, path);
}

int64_t SectionReader::Place(const std::string& name, int line,
                             const std::string& path) {
  const auto found = std::lower_bound(names_.begin(), names_.end(), name);
  if (found != names_.end() && *found == name) {
    return found - names_.begin();
  }
  // Looking through all names is not for what nobody will see.
  const std::string nearest = yaml_.full() ? "" : NearestName(name, names_);
  const size_t shown = std::min<size_t>(names_.size(), 8);
  yaml_.Add(
      line, path,
      absl::StrCat(
          "found ", config::Quoted(name), ", which is no node",
          nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"),
          " allowed: ",
          absl::StrJoin(names_.begin(),
                        names_.begin() + static_cast<int64_t>(shown), ", "),
          shown < names_.size()
              ? absl::StrCat(" and ", names_.size() - shown, " more")
              : ""));
  return -1;
}

std::optional<std::pair<int64_t, int64_t>> SectionReader::Pair(
    const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) {
    yaml_.Wrong(node, path, "a pair of nodes such as [a, b]");
    return std::nullopt;
  }
  const int64_t a = Member(node.items[0], path);
  const int64_t b = Member(node.items[1], path);
  if (a < 0 || b < 0) return std::nullopt;
  if (a == b) {
    yaml_.Add(node.line, path,
              absl::StrCat("found ", names_[static_cast<size_t>(a)],
                           " at both ends; allowed: two nodes"));
    return std::nullopt;
  }
  return std::make_pair(a, b);
}

}  // namespace dfl::sim
