// Small texts as values, and values as texts that read back the same.
#ifndef DFL_CONFIG_VALUES_H_
#define DFL_CONFIG_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace dfl::config {

// All give nullopt for anything but the whole text in the form shown.
std::optional<int64_t> ReadInteger(absl::string_view text);    // -7
std::optional<uint64_t> ReadUnsigned(absl::string_view text);  // 7
std::optional<double> ReadNumber(absl::string_view text);  // 0.5, 1e-3; finite
std::optional<bool> ReadFlag(absl::string_view text);  // on off yes no true ...
std::optional<uint64_t> ReadSize(absl::string_view text);  // 64MiB 2GB 4096
std::optional<absl::Duration> ReadDuration(absl::string_view text);  // 1h30m

// Hours of a day, in minutes from midnight; from > until: over midnight.
struct Hours {
  int from = 0;
  int until = 0;

  bool Hold(int minute) const {
    return from < until ? minute >= from && minute < until
                        : minute >= from || minute < until;
  }
};
std::optional<Hours> ReadHours(absl::string_view text);  // 22:00-06:30

std::string WriteNumber(double value);  // shortest that reads back
std::string WriteNumber(float value);
std::string WriteSize(uint64_t bytes);           // "64MiB" where it is whole
std::string WriteDuration(absl::Duration time);  // "1h30m", "500ms"
// `text` as a YAML scalar, quoted where YAML needs it. In flow lists too.
std::string WriteText(absl::string_view text);
// "[a, b]".
std::string WriteList(absl::Span<const std::string> items);

// "a, b or c".
std::string Either(absl::Span<const std::string> choices);
// `text` in double quotes, printable and cut to about 60 characters.
std::string Quoted(absl::string_view text);

// Collects mistakes to report them together. Keeps the first ones, and counts
// the others.
class Mistakes {
 public:
  static constexpr size_t kReported = 10;

  void Add(std::string line) {
    if (full()) {
      ++more_;
    } else {
      lines_.push_back(std::move(line));
    }
  }
  bool empty() const { return lines_.empty(); }
  // Whether what is added now will not be seen.
  bool full() const { return lines_.size() >= kReported; }
  // OK, or INVALID_ARGUMENT with the first ten, a line each.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> lines_;  // at most kReported
  size_t more_ = 0;
};

}  // namespace dfl::config

#endif  // DFL_CONFIG_VALUES_H_
