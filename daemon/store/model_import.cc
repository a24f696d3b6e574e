#include "daemon/store/model_import.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/shape.h"

namespace dfl::store {
namespace {

// A tensor of the model that an import may replace.
struct Target {
  const ports::TensorInfo* info = nullptr;
  bool buffer = false;
  bool wanted = true;
  std::optional<size_t> source;  // index in the header
};

using Names = std::vector<std::string>;

bool IsFloat(const std::string& dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F64";
}

class Matching {
 public:
  Matching(const ports::ModelInfo& model, const SafetensorsHeader& header,
           const ImportOptions& options)
      : header_(header), options_(options) {
    for (const auto& info : model.parameters) Add(info, false);
    for (const auto& info : model.buffers) Add(info, true);
    for (const auto& [alias, name] : model.aliases) {
      const auto place = places_.find(name);
      if (place == places_.end()) continue;
      targets_[place->second].wanted |= Wanted(alias);
      places_.emplace(alias, place->second);
    }
  }

  absl::StatusOr<ImportPlan> Run() {
    DFL_RETURN_IF_ERROR(CheckPatterns());
    DFL_RETURN_IF_ERROR(FindSources());
    DFL_RETURN_IF_ERROR(CheckNoneMissing());
    DFL_RETURN_IF_ERROR(CheckForms());
    return MakePlan();
  }

 private:
  bool Wanted(const std::string& name) const {
    return options_.only.empty() ||
           std::any_of(options_.only.begin(), options_.only.end(),
                       [&](const std::string& pattern) {
                         return MatchesPattern(pattern, name);
                       });
  }
  void Add(const ports::TensorInfo& info, bool buffer) {
    Target target;
    target.info = &info;
    target.buffer = buffer;
    target.wanted = Wanted(info.name);
    places_.emplace(info.name, targets_.size());
    targets_.push_back(target);
  }

  absl::Status CheckPatterns() const {
    for (const std::string& pattern : options_.only) {
      const bool matches =
          std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
            return MatchesPattern(pattern, place.first);
          });
      if (!matches) {
        return absl::InvalidArgumentError(
            absl::StrCat("--only ", pattern,
                         ": no tensor of the model is so "
                         "called; it has ",
                         SomeOf(TargetNames())));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindSources() {
    // Their own names first: tied tensors may stand in the file twice.
    for (const bool by_alias : {false, true}) {
      for (size_t i = 0; i < header_.tensors.size(); ++i) {
        const std::string name = NameOf(i);
        const auto place = places_.find(name);
        if (place == places_.end()) continue;
        Target& target = targets_[place->second];
        if ((target.info->name != name) != by_alias) continue;
        if (target.source.has_value() && !by_alias) {
          return SafetensorsError(
              absl::StrCat(QuotedName(name), " comes twice without the prefix ",
                           options_.strip_prefix));
        }
        if (!target.source.has_value()) target.source = i;
      }
    }
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      if (places_.count(NameOf(i)) == 0) extra_.push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status CheckNoneMissing() const {
    Names missing;
    for (const Target& target : targets_) {
      if (target.wanted && !target.source.has_value()) {
        missing.push_back(target.info->name);
      }
    }
    if (missing.empty()) return absl::OkStatus();
    if (options_.init_missing) {
      const size_t wanted = static_cast<size_t>(
          std::count_if(targets_.begin(), targets_.end(),
                        [](const Target& target) { return target.wanted; }));
      if (missing.size() < wanted) return absl::OkStatus();
    }
    std::string text =
        absl::StrCat("tensors are missing: ", SomeOf(Quoted(missing)));
    if (!extra_.empty()) {
      absl::StrAppend(&text, "; the file has ", SomeOf(Quoted(ExtraNames())),
                      ", which the model does not");
    }
    const std::string hint = Hint(missing);
    if (!hint.empty()) absl::StrAppend(&text, "; did you mean ", hint, "?");
    if (!options_.init_missing) {
      absl::StrAppend(&text,
                      ". To keep the node's values for what is missing: "
                      "--init-missing");
    }
    return SafetensorsError(text);
  }

  // What may be meant by names that do not fit. A name of the file is looked up
  // once for each of the model's that it ends with.
  std::string Hint(const Names& missing) const {
    const Names extra = ExtraNames();
    const std::unordered_set<std::string> known(extra.begin(), extra.end());
    for (const std::string& name : extra) {
      if (name.size() <= missing[0].size() ||
          !absl::EndsWith(name, missing[0])) {
        continue;
      }
      const std::string prefix =
          name.substr(0, name.size() - missing[0].size());
      if (prefix.back() != '.') continue;
      const bool all = std::all_of(missing.begin(), missing.end(),
                                   [&](const std::string& target) {
                                     return known.count(prefix + target) > 0;
                                   });
      if (all) return absl::StrCat("--strip-prefix ", prefix);
    }
    const std::string nearest = NearestName(missing[0], extra);
    if (nearest.empty()) return "";
    return absl::StrCat(QuotedName(nearest), " by ", QuotedName(missing[0]));
  }

  // Dtypes first: another dtype explains another size.
  absl::Status CheckForms() const {
    for (const Target& target : targets_) {
      if (!Taken(target)) continue;
      const FileTensor& tensor = header_.tensors[*target.source];
      if (IsFloat(tensor.dtype)) continue;
      return SafetensorsError(absl::StrCat(
          QuotedName(tensor.name), ": dtype ", QuotedName(tensor.dtype),
          " cannot become float32, which the model has here; allowed: F32, and "
          "F16, BF16, F64, which are converted. Write the file again with one "
          "of these"));
    }
    Names wrong;
    for (const Target& target : targets_) {
      if (!Taken(target)) continue;
      const FileTensor& tensor = header_.tensors[*target.source];
      if (tensor.shape == target.info->shape) continue;
      wrong.push_back(absl::StrCat(
          QuotedName(tensor.name), ": shape ", core::ShapeText(tensor.shape),
          ", where the model's is ", core::ShapeText(target.info->shape)));
    }
    if (wrong.empty()) return absl::OkStatus();
    return SafetensorsError(absl::StrCat(
        SomeOf(wrong),
        ". To take the rest of a model with another head: --only 'PATTERN' "
        "for the names that are alike"));
  }

  absl::StatusOr<ImportPlan> MakePlan() const {
    ImportPlan plan;
    std::map<std::string, int64_t> converted;
    Names kept;
    Names tied;
    for (const Target& target : targets_) {
      if (!Taken(target)) {
        kept.push_back(target.info->name);
        continue;
      }
      const FileTensor& tensor = header_.tensors[*target.source];
      plan.moves.push_back({*target.source,
                            target.buffer,
                            {target.info->offset, target.info->size}});
      if (tensor.dtype != "F32") ++converted[tensor.dtype];
      const std::string name = NameOf(*target.source);
      if (name != target.info->name) {
        tied.push_back(absl::StrCat(QuotedName(name), " is taken for ",
                                    QuotedName(target.info->name)));
      }
    }
    if (!tied.empty()) {
      plan.notes.push_back(absl::StrCat("of tied tensors, ", SomeOf(tied)));
    }
    std::sort(plan.moves.begin(), plan.moves.end(),
              [](const ImportPlan::Move& a, const ImportPlan::Move& b) {
                return a.tensor < b.tensor;
              });
    for (const auto& [dtype, count] : converted) {
      plan.notes.push_back(
          absl::StrCat(count, count == 1 ? " tensor is " : " tensors are ",
                       dtype, " and converted to float32",
                       dtype == "F64" ? "" : ", which changes no value"));
    }
    if (!extra_.empty()) {
      Names names;
      for (const size_t i : extra_) {
        names.push_back(absl::StrCat(QuotedName(header_.tensors[i].name), " (",
                                     header_.tensors[i].dtype, ")"));
      }
      plan.notes.push_back(absl::StrCat(
          "skipped, for the node does not train it: ", SomeOf(names)));
    }
    if (!kept.empty()) {
      plan.notes.push_back(
          absl::StrCat("keeps the node's values: ", SomeOf(Quoted(kept))));
    }
    return plan;
  }

  static bool Taken(const Target& target) {
    return target.wanted && target.source.has_value();
  }
  // The name of a tensor of the file as the model would call it.
  std::string NameOf(size_t i) const {
    return std::string(
        absl::StripPrefix(header_.tensors[i].name, options_.strip_prefix));
  }
  Names TargetNames() const {
    Names names;
    for (const Target& target : targets_) names.push_back(target.info->name);
    return names;
  }
  Names ExtraNames() const {
    Names names;
    for (const size_t i : extra_) names.push_back(header_.tensors[i].name);
    return names;
  }
  static Names Quoted(Names names) {
    for (std::string& name : names) name = QuotedName(name);
    return names;
  }

  const SafetensorsHeader& header_;
  const ImportOptions& options_;
  std::vector<Target> targets_;
  std::map<std::string, size_t> places_;  // in targets_, aliases included
  std::vector<size_t> extra_;             // of the file alone
};

}  // namespace

absl::StatusOr<ImportPlan> PlanImport(const ports::ModelInfo& model,
                                      const SafetensorsHeader& header,
                                      const ImportOptions& options) {
  return Matching(model, header, options).Run();
}

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Where the last * was, and what of the name it stands for so far.
  size_t star = absl::string_view::npos;
  size_t resume = 0;
  size_t p = 0;
  size_t n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n]) &&
        pattern[p] != '*') {
      ++p;
      ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace dfl::store
