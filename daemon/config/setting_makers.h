// The kinds of settings: each function makes a Setting of one type of value,
// which parses and writes it. settings_table.cc lists the settings.
// Room-internal.
#ifndef DFL_CONFIG_SETTING_MAKERS_H_
#define DFL_CONFIG_SETTING_MAKERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/settings_table.h"
#include "daemon/config/values.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::config {

// Where a value of type T stands in the settings.
template <typename T>
using Place = T& (*)(NodeSettings&);

template <typename T>
const T& Look(Place<T> place, const NodeSettings& settings) {
  return place(const_cast<NodeSettings&>(settings));
}

// INVALID_ARGUMENT. `why` is "" where the setting's list of what is allowed
// says it all.
absl::Status NotAllowed(absl::string_view why = "");

// OK, or why a text is not allowed.
using TextCheck = std::function<absl::Status(absl::string_view)>;

// A setting that has no `set` and `get` yet.
Setting Named(std::string key, std::string unit, std::string allowed,
              std::string help);
// The setting, whose default depends on the machine as the note says.
Setting WithNote(Setting setting, std::string default_note);

Setting Text(std::string key, Place<std::string> place, std::string allowed,
             TextCheck check, std::string help);
// `check` is asked about each text.
Setting TextList(std::string key, Place<std::vector<std::string>> place,
                 std::string allowed, TextCheck check, std::string help);
Setting Flag(std::string key, Place<bool> place, std::string help);
// The same, or "auto": what the help says.
Setting AutoFlag(std::string key, Place<std::optional<bool>> place,
                 std::string help);
// At most ports::kMaxLabels labels, names and values as those of nodes.
Setting Labels(std::string key, Place<std::map<std::string, std::string>> place,
               std::string help);
// An integer in [min, max].
Setting Integer(std::string key, Place<int64_t> place, int64_t min, int64_t max,
                std::string unit, std::string help);
// Any integer of 64 bits.
Setting Seed(std::string key, Place<uint64_t> place, std::string help);
// A number of bytes, at least `min`.
Setting Size(std::string key, Place<uint64_t> place, uint64_t min,
             std::string help);
// From 100 ms to 24 h, or 0.
Setting Interval(std::string key, Place<absl::Duration> place,
                 std::string help);
// A number above 0.
Setting Positive(std::string key, Place<double> place, std::string help);
// Integers of at least 1.
Setting IntegerList(std::string key, Place<std::vector<int64_t>> place,
                    std::string allowed, std::string help);
Setting NumberList(std::string key, Place<std::vector<float>> place,
                   std::string allowed, bool no_negatives, std::string help);
Setting NumberList(std::string key, Place<std::vector<double>> place,
                   std::string allowed, bool no_negatives, std::string help);
// Each element is numbers between colons, "1:99".
Setting RatioList(std::string key,
                  Place<std::vector<std::vector<double>>> place,
                  std::string allowed, std::string help);

// One of a few words, each standing for a value of T.
template <typename T>
Setting Choice(std::string key, Place<T> place,
               std::vector<std::pair<std::string, T>> choices,
               std::string help) {
  std::vector<std::string> names;
  for (const auto& choice : choices) names.push_back(choice.first);
  Setting setting = Named(std::move(key), "", Either(names), std::move(help));
  setting.set = [place, choices, names](const RawValue& value,
                                        NodeSettings& settings) {
    if (value.is_list) return NotAllowed("a list is not taken here");
    for (const auto& [name, meant] : choices) {
      if (name == value.text) {
        place(settings) = meant;
        return absl::OkStatus();
      }
    }
    const std::string nearest = NearestName(value.text, names);
    return NotAllowed(
        nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "?"));
  };
  setting.get = [place, choices](const NodeSettings& settings) {
    for (const auto& [name, meant] : choices) {
      if (meant == Look(place, settings)) return WriteText(name);
    }
    return std::string("\"\"");
  };
  return setting;
}

}  // namespace dfl::config

#endif  // DFL_CONFIG_SETTING_MAKERS_H_
