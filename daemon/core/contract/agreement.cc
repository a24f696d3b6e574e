#include "daemon/core/contract/agreement.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/utf8.h"
#include "daemon/core/contract/fix_input.h"
#include "daemon/core/contract/labels.h"
#include "daemon/core/contract/shape.h"
#include "daemon/core/contract/sides.h"

namespace dfl::core {
namespace {

using Offers = absl::Span<const NamedOffer>;
using Over = InputScaling::Over;

// Fixes one field after the other. A method that cannot notes why and returns
// false. What a method fixes, later ones rely on.
class Fixing {
 public:
  Fixing(const DataSection& section, int64_t classes, Offers offers,
         bool may_pool)
      : out_(section),
        model_classes_(classes),
        offers_(offers),
        may_pool_(may_pool) {}

  absl::StatusOr<DataSection> Run() {
    // Without the task there are no classes, and without names and shape no
    // numbers of features. Of a width that differs the names say more.
    if (FixTask()) FixClasses();
    if (FixFeatures() && FixShape()) FixScaling();
    CompareLosses();
    FixModel();
    if (wrong_.empty()) return std::move(out_);
    return absl::InvalidArgumentError(absl::StrJoin(wrong_, "\n"));
  }

 private:
  bool Wrong(ContractField field, const std::vector<Side>& sides,
             absl::string_view more = "") {
    wrong_.push_back(DisagreementText(field, sides, more));
    return false;
  }
  bool WrongText(absl::string_view text) {
    wrong_.emplace_back(text);
    return false;
  }

  bool FixTask() {
    std::optional<Task> wanted = out_.task;
    std::string plan = wanted.has_value() ? std::string(TaskName(*wanted)) : "";
    if (!wanted.has_value() && model_classes_ != kClassesOfData) {
      wanted = model_classes_ == 0 ? Task::kRegression : Task::kClassification;
      plan = absl::StrCat(TaskName(*wanted),
                          " (model.classes: ", model_classes_, ")");
    }
    if (!wanted.has_value()) wanted = offers_[0].offer.task;
    const bool agree = std::all_of(
        offers_.begin(), offers_.end(),
        [&](const NamedOffer& named) { return named.offer.task == *wanted; });
    if (!agree) {
      return Wrong(
          ContractField::kTask,
          Sides(
              offers_,
              [](const DataOffer& o) { return std::string(TaskName(o.task)); },
              plan.empty() ? std::nullopt : std::optional(plan)));
    }
    out_.task = *wanted;
    return true;
  }

  // Whether no offer has a label that `classes`, which `who` lists, lacks.
  bool AllKnown(const std::vector<std::string>& classes,
                const std::string& who) {
    const std::set<std::string> known(classes.begin(), classes.end());
    std::vector<Side> sides = {{who, NamesText(classes)}};
    for (const NamedOffer& named : offers_) {
      const DataOffer& offer = named.offer;
      std::string unknown;
      for (size_t i = 0; i < offer.classes.size(); ++i) {
        if (known.count(CanonicalLabel(offer.classes[i])) > 0) continue;
        absl::StrAppend(&unknown, unknown.empty() ? "" : ", ",
                        NamesText({offer.classes[i]}));
        if (i < offer.class_places.size()) {
          absl::StrAppend(&unknown, " (", offer.class_places[i], ")");
        }
      }
      if (unknown.empty()) continue;
      sides.push_back(
          {named.who, absl::StrCat(NamesText(offer.classes),
                                   ", and not in it is ", unknown)});
    }
    return sides.size() == 1 || Wrong(ContractField::kClasses, sides);
  }

  bool FixClasses() {
    if (*out_.task == Task::kRegression) {
      if (!out_.classes.has_value() || out_.classes->empty()) return true;
      return WrongText(absl::StrCat(
          "classes: the plan says ", NamesText(*out_.classes),
          ", and a regression has none; to mend it, remove data.classes from "
          "the plan, or set data.task: classification there and on every "
          "node"));
    }
    if (out_.classes.has_value()) {
      for (std::string& name : *out_.classes) name = CanonicalLabel(name);
      return AllKnown(*out_.classes, "the plan");
    }
    std::vector<std::string> classes;
    const auto stated = std::find_if(
        offers_.begin(), offers_.end(),
        [](const NamedOffer& n) { return n.offer.classes_stated; });
    if (stated != offers_.end()) {
      if (!StatedAlike()) return false;
      for (const std::string& name : stated->offer.classes) {
        classes.push_back(CanonicalLabel(name));
      }
      if (!AllKnown(classes, stated->who)) return false;
    } else {
      classes = NumberLabels();
    }
    if (!EnoughClasses(classes)) return false;
    out_.classes = std::move(classes);
    return true;
  }

  bool StatedAlike() {
    std::vector<Side> sides;
    for (const NamedOffer& named : offers_) {
      if (!named.offer.classes_stated) continue;
      std::vector<std::string> names;
      for (const std::string& name : named.offer.classes) {
        names.push_back(CanonicalLabel(name));
      }
      sides.push_back({named.who, NamesText(names)});
    }
    return AllSay(sides) || Wrong(ContractField::kClasses, sides,
                                  "the order binds, since settings list them");
  }

  // Rules 3 and 4.
  std::vector<std::string> NumberLabels() const {
    std::vector<std::string> all;
    for (const NamedOffer& named : offers_) {
      all.insert(all.end(), named.offer.classes.begin(),
                 named.offer.classes.end());
    }
    all = SortedLabels(all);
    const bool stand_for_themselves =
        model_classes_ > 0 &&
        std::all_of(all.begin(), all.end(), [&](const std::string& label) {
          const std::optional<int64_t> integer = IntegerLabel(label);
          return integer.has_value() && *integer >= 0 &&
                 *integer < model_classes_;
        });
    if (!stand_for_themselves) return all;
    std::vector<std::string> numbers;
    for (int64_t i = 0; i < model_classes_; ++i) {
      numbers.push_back(absl::StrCat(i));
    }
    return numbers;
  }

  bool EnoughClasses(const std::vector<std::string>& classes) {
    const auto found = static_cast<int64_t>(classes.size());
    if (model_classes_ > 0 && found != model_classes_) {
      return Wrong(
          ContractField::kClasses,
          Sides(
              offers_, [](const DataOffer& o) { return NamesText(o.classes); },
              absl::StrCat("model.classes: ", model_classes_)),
          absl::StrCat("that makes ", found, found == 1 ? " class" : " classes",
                       ": which number each of ", model_classes_,
                       " has is not known; ask all nodes at once if others "
                       "have the rest"));
    }
    if (found >= 2) return true;
    return Wrong(
        ContractField::kClasses,
        Sides(
            offers_, [](const DataOffer& o) { return NamesText(o.classes); },
            std::nullopt),
        "at least two classes are needed");
  }

  bool FixShape() {
    const auto text = [](const DataOffer& o) {
      return absl::StrCat(ShapeText(o.shape),
                          o.shape_is_at_least ? " at least" : "");
    };
    std::optional<std::vector<int64_t>> wanted = out_.shape;
    if (!wanted.has_value()) {
      for (const NamedOffer& named : offers_) {
        if (!named.offer.shape_is_at_least) {
          wanted = named.offer.shape;
          break;
        }
      }
    }
    // Several widths that are the least ones, and nobody who knows: the largest
    // would do today, and not when a node with a larger one comes.
    if (!wanted.has_value()) wanted = offers_[0].offer.shape;
    const bool known =
        out_.shape.has_value() ||
        std::any_of(offers_.begin(), offers_.end(), [](const NamedOffer& n) {
          return !n.offer.shape_is_at_least;
        });
    const bool agree = std::all_of(
        offers_.begin(), offers_.end(), [&](const NamedOffer& named) {
          const DataOffer& offer = named.offer;
          if (offer.shape == *wanted) return true;
          return known && offer.shape_is_at_least &&
                 Product(offer.shape) <= Product(*wanted);
        });
    if (!agree) {
      return Wrong(
          ContractField::kShape,
          Sides(offers_, text,
                out_.shape.has_value() ? std::optional(ShapeText(*out_.shape))
                                       : std::nullopt));
    }
    const int64_t names = out_.features.has_value()
                              ? static_cast<int64_t>(out_.features->size())
                              : 0;
    if (names > 0 && names != Product(*wanted)) {
      return WrongText(absl::StrCat(
          "features: ", names, " names for rows of shape ", ShapeText(*wanted),
          "; to mend it, set ", FieldCure(ContractField::kFeatures)));
    }
    out_.shape = *wanted;
    return true;
  }

  bool FixFeatures() {
    std::vector<std::string> wanted;
    if (out_.features.has_value()) {
      wanted = *out_.features;
      // An empty list says that columns are told apart by their place.
      if (wanted.empty()) return true;
    } else {
      wanted = offers_[0].offer.features;
    }
    const std::set<std::string> names(wanted.begin(), wanted.end());
    const auto same_set = [&](const DataOffer& offer) {
      return offer.features.size() == wanted.size() &&
             std::set<std::string>(offer.features.begin(),
                                   offer.features.end()) == names;
    };
    if (!std::all_of(
            offers_.begin(), offers_.end(),
            [&](const NamedOffer& named) { return same_set(named.offer); })) {
      return Wrong(
          ContractField::kFeatures,
          Sides(
              offers_,
              [](const DataOffer& o) {
                return o.features.empty() ? "no names" : NamesText(o.features);
              },
              out_.features.has_value() ? std::optional(NamesText(wanted))
                                        : std::nullopt),
          MissingNames(names));
    }
    if (!wanted.empty()) out_.features = std::move(wanted);
    return true;
  }

  // Of the first offer that differs from `names`.
  std::string MissingNames(const std::set<std::string>& names) const {
    for (const NamedOffer& named : offers_) {
      const std::set<std::string> own(named.offer.features.begin(),
                                      named.offer.features.end());
      if (own == names) continue;
      if (own.empty() || names.empty()) {
        return "give every file a header line; or `features: []` in the plan's "
               "data section, to tell columns apart by their place alone";
      }
      std::vector<std::string> lacks;
      std::vector<std::string> extra;
      std::set_difference(names.begin(), names.end(), own.begin(), own.end(),
                          std::back_inserter(lacks));
      std::set_difference(own.begin(), own.end(), names.begin(), names.end(),
                          std::back_inserter(extra));
      return absl::StrCat(
          named.who,
          lacks.empty() ? "" : absl::StrCat(" lacks ", NamesText(lacks)),
          lacks.empty() || extra.empty() ? "" : " and",
          extra.empty() ? ""
                        : absl::StrCat(" has ", NamesText(extra), " more"));
    }
    return "";
  }

  void FixScaling() {
    const absl::Status fixed = FixInput(offers_, may_pool_, out_);
    if (!fixed.ok()) WrongText(fixed.message());
  }

  void CompareLosses() {
    const std::vector<Side> sides =
        Sides(offers_, [](const DataOffer& o) { return o.loss; }, std::nullopt);
    if (!AllSay(sides)) Wrong(ContractField::kLoss, sides);
  }

  void FixModel() {
    const std::vector<Side> sides = Sides(
        offers_, [](const DataOffer& o) { return o.model; },
        out_.model.empty() ? std::nullopt : std::optional(out_.model));
    if (!AllSay(sides)) {
      Wrong(ContractField::kModel, sides,
            out_.model.empty()
                ? ""
                : "if another model than at first is meant, remove data.model "
                  "from the plan, or begin another run with --new-run");
      return;
    }
    out_.model = offers_[0].offer.model;
  }

  DataSection out_;
  const int64_t model_classes_;
  const Offers offers_;
  const bool may_pool_;
  std::vector<std::string> wrong_;
};

}  // namespace

absl::StatusOr<DataSection> Fix(const DataSection& section, int64_t classes,
                                absl::Span<const NamedOffer> offers) {
  if (offers.empty()) {
    return absl::InvalidArgumentError(
        "no node said what its data are; ask at least one that answers");
  }
  return Fixing(section, classes, offers, /*may_pool=*/true).Run();
}

absl::Status CheckNames(const DataOffer& offer) {
  const auto check = [](absl::string_view what, absl::string_view name,
                        absl::string_view place) {
    const bool is_text = IsUtf8(name);
    if (is_text && !name.empty() && name.size() <= kMaxNameBytes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        what, " \"", absl::CHexEscape(name.substr(0, 40)), "\"",
        place.empty() ? "" : absl::StrCat(" (", place, ")"),
        is_text ? absl::StrCat(" has ", name.size(), " bytes; allowed: 1 to ",
                               kMaxNameBytes, "; is this the right column?")
                : " is no UTF-8; allowed: files that are saved as UTF-8"));
  };
  for (size_t i = 0; i < offer.classes.size(); ++i) {
    DFL_RETURN_IF_ERROR(
        check("class", offer.classes[i],
              i < offer.class_places.size() ? offer.class_places[i] : ""));
  }
  for (const std::string& name : offer.features) {
    DFL_RETURN_IF_ERROR(check("feature", name, ""));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataContract> Resolve(const DataSection& section,
                                     int64_t classes, const DataOffer& offer) {
  DFL_RETURN_IF_ERROR(CheckNames(offer));
  const NamedOffer own{"this node", offer};
  DFL_ASSIGN_OR_RETURN(
      DataSection fixed,
      Fixing(section, classes, absl::MakeConstSpan(&own, 1), false).Run());
  DataContract contract;
  contract.task = *fixed.task;
  if (fixed.classes.has_value()) contract.classes = *std::move(fixed.classes);
  if (fixed.features.has_value())
    contract.features = *std::move(fixed.features);
  contract.shape = *std::move(fixed.shape);
  contract.input.divide = *fixed.divide;
  contract.input.per = *fixed.per;
  contract.input.over = fixed.over.value_or(Over::kNode);
  contract.input.mean = std::move(fixed.mean);
  contract.input.std = std::move(fixed.std);
  contract.loss = offer.loss;
  contract.model = std::move(fixed.model);
  return contract;
}

}  // namespace dfl::core
