// Knobs: the numbers that steer an algorithm. Each is declared once, beside its
// algorithm; the plan's validation, `dflctl algorithm show`, help texts and the
// documentation all read this declaration.
#ifndef DFL_CORE_ALGORITHM_KNOBS_H_
#define DFL_CORE_ALGORITHM_KNOBS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/names.h"

namespace dfl::core {

// A closed range of integers from which each node draws one value; lo == hi is
// a plain integer.
struct IntRange {
  int64_t lo = 0;
  int64_t hi = 0;
  friend bool operator==(const IntRange& a, const IntRange& b) {
    return a.lo == b.lo && a.hi == b.hi;
  }
};

using KnobValue = std::variant<double, int64_t, bool, std::string, IntRange>;

// "0.5", "10", "on", "polyak", "[5, 10]".
std::string ToString(const KnobValue& value);

enum class KnobType { kNumber, kInteger, kFlag, kText, kIntRange };

// The noun of the command line that shows and sets a knob.
enum class KnobNoun { kAlgorithm, kParticipation, kPeriod };

struct KnobSpec {
  std::string name = {};
  KnobType type = KnobType::kNumber;
  KnobValue default_value = 0.0;
  // Bounds for numbers, integers and both ends of ranges.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;  // min itself is not allowed
  bool max_open = false;
  std::vector<std::string> choices = {};  // kText: what is allowed
  std::string unit = {};                  // "" when it has none
  bool retunable = true;                  // may change while the run goes on
  bool shared = false;  // nodes rely on each other's: no override per node
  KnobNoun noun = KnobNoun::kAlgorithm;
  std::string help = {};  // one sentence or two, with the symbol of the paper

  // "(0, 1]", "integer >= 1", "polyak or nesterov".
  std::string AllowedText() const;

  // `text` ("0.5", "7", "5..10", "[5, 10]", "on") as a checked value.
  // Errors: INVALID_ARGUMENT "nu: 1.5 is not in (0, 1]".
  absl::StatusOr<KnobValue> Parse(absl::string_view text) const;

  // Errors: as Parse.
  absl::Status Check(const KnobValue& value) const;
};

// A number above 0, as most algorithms declare several of.
KnobSpec PositiveKnob(std::string name, double default_value, std::string help);

// Both lists, `first` first.
std::vector<KnobSpec> Joined(std::vector<KnobSpec> first,
                             const std::vector<KnobSpec>& second);

// Values by name, as written in a plan: only what differs from the defaults
// need be there.
using KnobValues = std::map<std::string, KnobValue>;

// The complete, checked set of one algorithm's knobs on one node.
class Knobs {
 public:
  Knobs() = default;

  // Defaults from `specs`, then `values`, then `overrides`.
  // Errors: INVALID_ARGUMENT names an unknown knob with the nearest known one,
  // or a value that is not allowed.
  static absl::StatusOr<Knobs> Resolve(absl::Span<const KnobSpec> specs,
                                       const KnobValues& values,
                                       const KnobValues& overrides = {});

  // The value of a declared knob; asking for an undeclared one or for another
  // type is a bug.
  double Number(absl::string_view name) const;
  int64_t Integer(absl::string_view name) const;
  bool Flag(absl::string_view name) const;
  const std::string& Text(absl::string_view name) const;
  IntRange Range(absl::string_view name) const;

  const KnobValues& values() const { return values_; }

 private:
  const KnobValue& Get(absl::string_view name) const;

  KnobValues values_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_KNOBS_H_
