#include "daemon/sim/network_event.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/sim/plan_changes.h"

namespace dfl::sim {
namespace {

using config::YamlNode;
using config::YamlReader;
using Kind = NetworkEvent::Kind;

// In the order of NetworkEvent::Kind.
constexpr const char* kKinds[] = {"crash",     "join", "cut",  "black_hole",
                                  "partition", "slow", "loss", "change",
                                  "leave",     "disk"};

// What says more of an event, and of which kinds.
struct Detail {
  const char* key;
  std::vector<Kind> of;
  const char* complaint;  // with another kind
};

const std::vector<Detail>& Details() {
  static const std::vector<Detail>* const kDetails = new std::vector<Detail>{
      {"for",
       {Kind::kCrash, Kind::kCut, Kind::kBlackHole, Kind::kPartition,
        Kind::kSlow, Kind::kLoss, Kind::kDisk},
       "`for` goes with what ends by itself, not with "},
      {"factor", {Kind::kSlow}, "`factor` goes with slow alone, not with "},
      {"fault", {Kind::kDisk}, "`fault` goes with disk alone, not with "},
      {"within",
       {Kind::kChange, Kind::kLeave, Kind::kJoin},
       "`within` goes with a change of the plan, not with "},
  };
  return *kDetails;
}

std::vector<std::string> Keys() {
  std::vector<std::string> keys = {"at"};
  for (const Detail& detail : Details()) keys.emplace_back(detail.key);
  keys.insert(keys.end(), std::begin(kKinds), std::end(kKinds));
  return keys;
}

std::optional<DiskFault> ReadFault(absl::string_view text) {
  if (text == "torn") return DiskFault::kTorn;
  if (text == "full") return DiskFault::kFull;
  if (text == "lost") return DiskFault::kLost;
  return std::nullopt;
}

class EventReader {
 public:
  explicit EventReader(SectionReader& reader)
      : reader_(reader), yaml_(reader.yaml()) {}

  // False, and a mistake, when it is none.
  bool Read(const YamlNode& node, WrittenEvent& out) {
    const std::string& path = out.path;
    if (!yaml_.IsSection(node, path)) return false;
    yaml_.TakeKeys(node, path, Keys());
    NetworkEvent& event = out.event;
    if (node.Find("at") == nullptr) {
      yaml_.Add(node.line, path, "`at` is missing; e.g. {at: 2s, crash: a}");
      return false;
    }
    reader_.Time(node, path, "at", absl::ZeroDuration(), event.at);
    reader_.Time(node, path, "for", absl::Nanoseconds(1), event.lasts);
    reader_.Time(node, path, "within", absl::ZeroDuration(), event.within);
    const YamlNode* what = ReadKind(node, path, event.kind);
    if (what == nullptr) return false;
    for (const Detail& detail : Details()) {
      const bool fits = std::find(detail.of.begin(), detail.of.end(),
                                  event.kind) != detail.of.end();
      if (!fits && node.Find(detail.key) != nullptr) {
        yaml_.Add(node.line, path, absl::StrCat(detail.complaint, what->key));
      }
    }
    return ReadValue(node, *what, path, out);
  }

 private:
  // What happens; null, and a mistake, when it is not one thing.
  const YamlNode* ReadKind(const YamlNode& node, const std::string& path,
                           Kind& kind) {
    const YamlNode* what = nullptr;
    int64_t given = 0;
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      const YamlNode* found = node.Find(kKinds[i]);
      if (found == nullptr) continue;
      ++given;
      what = found;
      kind = static_cast<Kind>(i);
    }
    if (given == 1) return what;
    yaml_.Add(node.line, path,
              absl::StrCat("found ", given,
                           " things that happen; allowed: "
                           "one of ",
                           absl::StrJoin(kKinds, ", ")));
    return nullptr;
  }

  bool ReadValue(const YamlNode& node, const YamlNode& what,
                 const std::string& path, WrittenEvent& out) {
    const std::string own = YamlReader::Join(path, what.key);
    NetworkEvent& event = out.event;
    switch (event.kind) {
      case Kind::kJoin:
      case Kind::kCrash:
      case Kind::kLeave:
        return ReadMember(what, own, event);
      case Kind::kCut:
      case Kind::kBlackHole: {
        const auto pair = reader_.Pair(what, own);
        if (!pair.has_value()) return false;
        event.members = {pair->first, pair->second};
        return true;
      }
      case Kind::kPartition:
        return ReadGroups(what, own, event.group);
      case Kind::kSlow:
        if (!ReadMember(what, own, event)) return false;
        if (node.Find("factor") == nullptr) {
          yaml_.Add(node.line, path,
                    "`factor` is missing; e.g. {at: 2s, slow: a, factor: 4}");
          return false;
        }
        reader_.AboveZero(node, path, "factor", event.amount);
        return true;
      case Kind::kDisk:
        if (!ReadMember(what, own, event)) return false;
        if (node.Find("fault") == nullptr) {
          yaml_.Add(node.line, path,
                    "`fault` is missing; e.g. {at: 2s, disk: a, fault: torn}");
          return false;
        }
        yaml_.Scalar(node, path, "fault", ReadFault, "torn, full or lost",
                     event.fault);
        return true;
      case Kind::kLoss:
        reader_.Probability(node, path, "loss", event.amount);
        return true;
      case Kind::kChange:
        if (!yaml_.IsSection(what, own)) return false;
        yaml_.TakeKeys(what, own, ChangeableKeys());
        out.change = what;
        return true;
    }
    return false;
  }

  bool ReadMember(const YamlNode& node, const std::string& path,
                  NetworkEvent& event) {
    const int64_t place = reader_.Member(node, path);
    if (place < 0) return false;
    event.members = {place};
    return true;
  }

  // Nodes that no group names form one of their own.
  bool ReadGroups(const YamlNode& node, const std::string& path,
                  std::vector<int64_t>& group) {
    constexpr char kAllowed[] = "a list of groups such as [[a, b], [c]]";
    if (node.kind != YamlNode::Kind::kList) {
      yaml_.Wrong(node, path, kAllowed);
      return false;
    }
    const auto groups = static_cast<int64_t>(node.items.size());
    group.assign(reader_.names().size(), groups);
    for (int64_t g = 0; g < groups; ++g) {
      const YamlNode& list = node.items[static_cast<size_t>(g)];
      const std::string own = YamlReader::Element(path, static_cast<size_t>(g));
      if (list.kind != YamlNode::Kind::kList) {
        yaml_.Wrong(list, own, kAllowed);
        return false;
      }
      for (const YamlNode& name : list.items) {
        const int64_t place = reader_.Member(name, own);
        if (place < 0) return false;
        int64_t& its = group[static_cast<size_t>(place)];
        if (its != groups) {
          yaml_.Add(name.line, own,
                    absl::StrCat("found ", name.text,
                                 " a second time; allowed: each node in one "
                                 "group"));
          return false;
        }
        its = g;
      }
    }
    return true;
  }

  SectionReader& reader_;
  YamlReader& yaml_;
};

// Who leaves must be there. Tells first joins from those of nodes that had
// left.
void CheckComingAndGoing(SectionReader& reader,
                         std::vector<WrittenEvent>& events) {
  std::set<int64_t> seen;
  std::set<int64_t> gone;
  for (WrittenEvent* written : InTime(events)) {
    NetworkEvent& event = written->event;
    if (event.kind == Kind::kJoin) {
      event.first = seen.count(event.members[0]) == 0;
      gone.erase(event.members[0]);
    } else if (event.kind == Kind::kLeave) {
      if (!gone.insert(event.members[0]).second) {
        reader.yaml().Add(
            written->line, YamlReader::Join(written->path, "leave"),
            absl::StrCat("found ",
                         reader.names()[static_cast<size_t>(event.members[0])],
                         ", which has left before; allowed: a node that is "
                         "there"));
      }
    } else {
      continue;
    }
    seen.insert(event.members[0]);
  }
}

}  // namespace

std::vector<WrittenEvent*> InTime(std::vector<WrittenEvent>& events) {
  std::vector<WrittenEvent*> in_time;
  for (WrittenEvent& event : events) in_time.push_back(&event);
  std::stable_sort(in_time.begin(), in_time.end(),
                   [](const WrittenEvent* a, const WrittenEvent* b) {
                     return a->event.at < b->event.at;
                   });
  return in_time;
}

std::vector<WrittenEvent> ReadEvents(const YamlNode& network,
                                     SectionReader& reader) {
  std::vector<WrittenEvent> events;
  reader.yaml().List(network, "network", "events",
                     "a list such as [{at: 2s, crash: a, for: 3s}]",
                     [&](const YamlNode& node, const std::string& path) {
                       WrittenEvent written;
                       written.path = path;
                       written.line = node.line;
                       if (EventReader(reader).Read(node, written)) {
                         events.push_back(std::move(written));
                       }
                     });
  CheckComingAndGoing(reader, events);
  return events;
}

}  // namespace dfl::sim
