#include "daemon/config/setting_makers.h"

#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/member_frames.h"

namespace dfl::config {

absl::Status NotAllowed(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

Setting Named(std::string key, std::string unit, std::string allowed,
              std::string help) {
  Setting setting;
  setting.key = std::move(key);
  setting.unit = std::move(unit);
  setting.allowed = std::move(allowed);
  setting.help = std::move(help);
  return setting;
}

Setting Text(std::string key, Place<std::string> place, std::string allowed,
             TextCheck check, std::string help) {
  Setting setting =
      Named(std::move(key), "", std::move(allowed), std::move(help));
  setting.set = [place, check](const RawValue& value, NodeSettings& settings) {
    if (value.is_list) return NotAllowed("a list is not taken here");
    DFL_RETURN_IF_ERROR(check(value.text));
    place(settings) = value.text;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return WriteText(Look(place, settings));
  };
  return setting;
}

namespace {

// The elements of a list, also of one written "a, b" in a single text.
std::vector<std::string> Elements(const RawValue& value) {
  if (value.is_list) return value.items;
  std::vector<std::string> items;
  for (const absl::string_view item : absl::StrSplit(value.text, ',')) {
    items.emplace_back(absl::StripAsciiWhitespace(item));
  }
  if (items.size() == 1 && items[0].empty()) items.clear();
  return items;
}

}  // namespace

Setting TextList(std::string key, Place<std::vector<std::string>> place,
                 std::string allowed, TextCheck check, std::string help) {
  Setting setting =
      Named(std::move(key), "", std::move(allowed), std::move(help));
  setting.is_list = true;
  setting.set = [place, check](const RawValue& value, NodeSettings& settings) {
    std::vector<std::string> items = Elements(value);
    for (const std::string& item : items) {
      const absl::Status status = check(item);
      if (!status.ok()) {
        return NotAllowed(
            status.message().empty()
                ? absl::StrCat(Quoted(item), " is not allowed")
                : absl::StrCat(Quoted(item), ": ", status.message()));
      }
    }
    place(settings) = std::move(items);
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return WriteList(Look(place, settings));
  };
  return setting;
}

Setting Flag(std::string key, Place<bool> place, std::string help) {
  Setting setting = Named(std::move(key), "", "on or off", std::move(help));
  setting.is_flag = true;
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    const std::optional<bool> flag =
        value.is_list ? std::nullopt : ReadFlag(value.text);
    if (!flag.has_value()) return NotAllowed();
    place(settings) = *flag;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) -> std::string {
    return Look(place, settings) ? "on" : "off";
  };
  return setting;
}

Setting AutoFlag(std::string key, Place<std::optional<bool>> place,
                 std::string help) {
  Setting setting =
      Named(std::move(key), "", "on, off or auto", std::move(help));
  setting.is_flag = true;
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    if (!value.is_list && value.text == "auto") {
      place(settings) = std::nullopt;
      return absl::OkStatus();
    }
    const std::optional<bool> flag =
        value.is_list ? std::nullopt : ReadFlag(value.text);
    if (!flag.has_value()) return NotAllowed();
    place(settings) = flag;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) -> std::string {
    const std::optional<bool>& flag = Look(place, settings);
    if (!flag.has_value()) return "auto";
    return *flag ? "on" : "off";
  };
  return setting;
}

Setting Labels(std::string key, Place<std::map<std::string, std::string>> place,
               std::string help) {
  Setting setting = Named(
      std::move(key), "",
      absl::StrCat("at most ", ports::kMaxLabels,
                   " labels such as {site: north} or [site=north]; names and "
                   "values have 1 to 63 letters, digits, '-', '_' and '.'"),
      std::move(help));
  setting.is_list = true;
  setting.is_map = true;
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    std::map<std::string, std::string> labels;
    for (const std::string& item : Elements(value)) {
      const std::vector<std::string> parts =
          absl::StrSplit(item, absl::MaxSplits('=', 1));
      if (parts.size() != 2) {
        return NotAllowed(absl::StrCat(Quoted(item), " has no '='"));
      }
      for (const std::string& part : parts) {
        const absl::Status status = ValidateNodeName(part);
        if (!status.ok()) {
          return NotAllowed(absl::StrCat(Quoted(item), ": ", status.message()));
        }
      }
      if (!labels.emplace(parts[0], parts[1]).second) {
        return NotAllowed(absl::StrCat(Quoted(parts[0]), " is there twice"));
      }
    }
    if (labels.size() > ports::kMaxLabels) {
      return NotAllowed(absl::StrCat("these are ", labels.size()));
    }
    place(settings) = std::move(labels);
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    std::vector<std::string> labels;
    for (const auto& [name, value] : Look(place, settings)) {
      labels.push_back(absl::StrCat(WriteText(name), ": ", WriteText(value)));
    }
    return absl::StrCat("{", absl::StrJoin(labels, ", "), "}");
  };
  return setting;
}

Setting Integer(std::string key, Place<int64_t> place, int64_t min, int64_t max,
                std::string unit, std::string help) {
  Setting setting =
      Named(std::move(key), std::move(unit),
            max == std::numeric_limits<int64_t>::max()
                ? absl::StrCat("an integer of at least ", min)
                : absl::StrCat("an integer from ", min, " to ", max),
            std::move(help));
  setting.set = [place, min, max](const RawValue& value,
                                  NodeSettings& settings) {
    const std::optional<int64_t> number =
        value.is_list ? std::nullopt : ReadInteger(value.text);
    if (!number.has_value()) return NotAllowed("that is no integer");
    if (*number < min || *number > max) return NotAllowed();
    place(settings) = *number;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return absl::StrCat(Look(place, settings));
  };
  return setting;
}

Setting Seed(std::string key, Place<uint64_t> place, std::string help) {
  Setting setting = Named(std::move(key), "", "an integer from 0 to 2^64 - 1",
                          std::move(help));
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    const std::optional<uint64_t> number =
        value.is_list ? std::nullopt : ReadUnsigned(value.text);
    if (!number.has_value()) return NotAllowed();
    place(settings) = *number;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return absl::StrCat(Look(place, settings));
  };
  return setting;
}

Setting Size(std::string key, Place<uint64_t> place, uint64_t min,
             std::string help) {
  Setting setting =
      Named(std::move(key), "bytes",
            absl::StrCat(
                min == 0 ? "a size"
                         : absl::StrCat("a size of at least ", WriteSize(min)),
                ", such as 512MiB, 2GB or 4096"),
            std::move(help));
  setting.set = [place, min](const RawValue& value, NodeSettings& settings) {
    const std::optional<uint64_t> size =
        value.is_list ? std::nullopt : ReadSize(value.text);
    if (!size.has_value()) return NotAllowed("that is no size");
    if (*size < min) return NotAllowed();
    place(settings) = *size;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return WriteSize(Look(place, settings));
  };
  return setting;
}

Setting Interval(std::string key, Place<absl::Duration> place,
                 std::string help) {
  static constexpr absl::Duration kLeast = absl::Milliseconds(100);
  static constexpr absl::Duration kMost = absl::Hours(24);
  Setting setting =
      Named(std::move(key), "",
            "0s, or a duration from 100ms to 24h, such as 30s or 5m",
            std::move(help));
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    const std::optional<absl::Duration> time =
        value.is_list ? std::nullopt : ReadDuration(value.text);
    if (!time.has_value()) return NotAllowed("that is no duration");
    const bool off = *time == absl::ZeroDuration();
    if (!off && (*time < kLeast || *time > kMost)) return NotAllowed();
    place(settings) = *time;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    const absl::Duration time = Look(place, settings);
    return time == absl::ZeroDuration() ? std::string("0s")
                                        : WriteDuration(time);
  };
  return setting;
}

Setting Positive(std::string key, Place<double> place, std::string help) {
  Setting setting =
      Named(std::move(key), "", "a number above 0", std::move(help));
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    const std::optional<double> number =
        value.is_list ? std::nullopt : ReadNumber(value.text);
    if (!number.has_value()) return NotAllowed("that is no number");
    if (*number <= 0) return NotAllowed();
    place(settings) = *number;
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return WriteNumber(Look(place, settings));
  };
  return setting;
}

Setting IntegerList(std::string key, Place<std::vector<int64_t>> place,
                    std::string allowed, std::string help) {
  Setting setting =
      Named(std::move(key), "", std::move(allowed), std::move(help));
  setting.is_list = true;
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    std::vector<int64_t> numbers;
    for (const std::string& item : Elements(value)) {
      const std::optional<int64_t> number = ReadInteger(item);
      if (!number.has_value() || *number < 1) {
        return NotAllowed(absl::StrCat(Quoted(item), " is not allowed"));
      }
      numbers.push_back(*number);
    }
    place(settings) = std::move(numbers);
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return absl::StrCat("[", absl::StrJoin(Look(place, settings), ", "), "]");
  };
  return setting;
}

namespace {

bool ReadNumberText(const std::string& text, float* number) {
  return absl::SimpleAtof(text, number);
}
bool ReadNumberText(const std::string& text, double* number) {
  return absl::SimpleAtod(text, number);
}

template <typename T>
Setting AnyNumberList(std::string key, Place<std::vector<T>> place,
                      std::string allowed, bool no_negatives,
                      std::string help) {
  Setting setting =
      Named(std::move(key), "", std::move(allowed), std::move(help));
  setting.is_list = true;
  setting.set = [place, no_negatives](const RawValue& value,
                                      NodeSettings& settings) {
    std::vector<T> numbers;
    for (const std::string& item : Elements(value)) {
      T number = 0;
      if (!ReadNumberText(item, &number) || !std::isfinite(number) ||
          (no_negatives && number < 0)) {
        return NotAllowed(absl::StrCat(Quoted(item), " is not allowed"));
      }
      numbers.push_back(number);
    }
    place(settings) = std::move(numbers);
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    return absl::StrCat("[",
                        absl::StrJoin(Look(place, settings), ", ",
                                      [](std::string* out, T number) {
                                        out->append(WriteNumber(number));
                                      }),
                        "]");
  };
  return setting;
}

}  // namespace

Setting NumberList(std::string key, Place<std::vector<float>> place,
                   std::string allowed, bool no_negatives, std::string help) {
  return AnyNumberList(std::move(key), place, std::move(allowed), no_negatives,
                       std::move(help));
}

Setting NumberList(std::string key, Place<std::vector<double>> place,
                   std::string allowed, bool no_negatives, std::string help) {
  return AnyNumberList(std::move(key), place, std::move(allowed), no_negatives,
                       std::move(help));
}

Setting RatioList(std::string key,
                  Place<std::vector<std::vector<double>>> place,
                  std::string allowed, std::string help) {
  Setting setting =
      Named(std::move(key), "", std::move(allowed), std::move(help));
  setting.is_list = true;
  setting.set = [place](const RawValue& value, NodeSettings& settings) {
    std::vector<std::vector<double>> ratios;
    for (const std::string& item : Elements(value)) {
      std::vector<double> ratio;
      for (const absl::string_view text : absl::StrSplit(item, ':')) {
        const std::optional<double> number = ReadNumber(text);
        if (!number.has_value() || *number < 0) {
          return NotAllowed(absl::StrCat(Quoted(item), " is not allowed"));
        }
        ratio.push_back(*number);
      }
      ratios.push_back(std::move(ratio));
    }
    place(settings) = std::move(ratios);
    return absl::OkStatus();
  };
  setting.get = [place](const NodeSettings& settings) {
    std::vector<std::string> texts;
    for (const std::vector<double>& ratio : Look(place, settings)) {
      texts.push_back(
          absl::StrJoin(ratio, ":", [](std::string* out, double number) {
            out->append(WriteNumber(number));
          }));
    }
    return WriteList(texts);
  };
  return setting;
}

Setting WithNote(Setting setting, std::string default_note) {
  setting.default_note = std::move(default_note);
  return setting;
}

}  // namespace dfl::config
