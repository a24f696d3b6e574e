#include "daemon/sim/variants.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/yaml_reader.h"

namespace dfl::sim {
namespace {

using config::YamlNode;

constexpr char kAllowedName[] =
    "letters, digits and _-.+=, not a dot first: it names a folder";
constexpr size_t kMaxName = 100;

bool IsFolderName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("_-.+=", c);
         });
}

// Whether it says what it is, and not only how.
bool NamesItself(const YamlNode& section) {
  return section.Find("name") != nullptr || section.Find("kind") != nullptr;
}

}  // namespace

void MergeSections(const YamlNode& over, YamlNode& base) {
  std::map<std::string, size_t> places;  // in base.items
  for (size_t i = 0; i < base.items.size(); ++i) {
    places.emplace(base.items[i].key, i);
  }
  std::set<std::string> gone;
  for (const YamlNode& item : over.items) {
    const auto place = places.find(item.key);
    if (item.kind == YamlNode::Kind::kNull) {
      gone.insert(item.key);
      continue;
    }
    if (place == places.end()) {
      base.items.push_back(item);
      continue;
    }
    YamlNode& found = base.items[place->second];
    if (item.kind == YamlNode::Kind::kMap &&
        found.kind == YamlNode::Kind::kMap && !NamesItself(item)) {
      MergeSections(item, found);
    } else {
      found = item;
    }
  }
  base.items.erase(std::remove_if(base.items.begin(), base.items.end(),
                                  [&](const YamlNode& item) {
                                    return gone.count(item.key) > 0;
                                  }),
                   base.items.end());
}

absl::StatusOr<std::vector<std::string>> VariantNames(
    const YamlNode& root, absl::string_view file_name) {
  config::YamlReader yaml(file_name);
  std::vector<std::string> names;
  const YamlNode* section = root.Find(kVariants);
  if (section == nullptr) return names;
  if (yaml.IsSection(*section, kVariants)) {
    for (const YamlNode& variant : section->items) {
      if (!IsFolderName(variant.key)) {
        yaml.Add(variant.key_line, kVariants,
                 absl::StrCat("found ", config::Quoted(variant.key),
                              "; allowed: ", kAllowedName));
      }
      yaml.IsSection(variant, config::YamlReader::Join(kVariants, variant.key));
      if (const YamlNode* nested = variant.Find(kVariants)) {
        yaml.Add(nested->key_line,
                 config::YamlReader::Join(kVariants, variant.key),
                 "a variant has no variants of its own");
      }
      names.push_back(variant.key);
    }
  }
  DFL_RETURN_IF_ERROR(yaml.status());
  return names;
}

absl::StatusOr<std::vector<std::string>> VariantNames(
    absl::string_view text, absl::string_view file_name) {
  DFL_ASSIGN_OR_RETURN(const YamlNode root, config::ParseYaml(text, file_name));
  return VariantNames(root, file_name);
}

absl::StatusOr<YamlNode> ApplyVariant(YamlNode root,
                                      absl::string_view file_name,
                                      absl::string_view variant) {
  DFL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                       VariantNames(root, file_name));
  YamlNode over;
  if (!variant.empty()) {
    if (std::find(names.begin(), names.end(), variant) == names.end()) {
      return absl::NotFoundError(absl::StrCat(
          file_name, ": there is no variant ", config::Quoted(variant),
          names.empty()
              ? ", nor any other"
              : absl::StrCat("; there are: ", absl::StrJoin(names, ", "))));
    }
    over = *root.Find(kVariants)->Find(variant);
  }
  root.items.erase(std::remove_if(root.items.begin(), root.items.end(),
                                  [](const YamlNode& item) {
                                    return item.key == kVariants;
                                  }),
                   root.items.end());
  MergeSections(over, root);
  return root;
}

}  // namespace dfl::sim
