#include "daemon/config/sample_configuration.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/settings_table.h"

namespace dfl::config {
namespace {

// `text` as comment lines of at most 80 columns.
std::string Comment(absl::string_view text, absl::string_view indent) {
  std::string out;
  std::string line = absl::StrCat(indent, "#");
  const size_t empty = line.size();
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() > empty && line.size() + 1 + word.size() > 80) {
      absl::StrAppend(&out, line, "\n");
      line = absl::StrCat(indent, "#");
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(&out, line, "\n");
  return out;
}

}  // namespace

std::string SampleConfiguration() {
  const NodeSettings defaults;
  std::string out =
      "# Settings of one dfld node. Every key is here; what is commented out "
      "shows its\n"
      "# default. What is the same on all nodes (model, algorithm, topology) "
      "is the run\n"
      "# plan: see plan.example.yaml.\n"
      "#\n"
      "# Each key has a variable and a flag: control.socket is also\n"
      "# DFLD_CONTROL_SOCKET=... and --control.socket=... . Precedence: flag, "
      "then\n"
      "# environment, then conf.d/*.yaml, then this file. Lists are written "
      "[a, b] here\n"
      "# and a,b there.\n"
      "#\n"
      "# Check with: dfld --config FILE --check\n"
      "# See what is in force, and from where: dflctl config show --effective "
      "--origin\n";
  std::vector<std::string> open;  // names of the sections we are in
  for (const Setting& setting : SettingsTable()) {
    std::vector<std::string> path = absl::StrSplit(setting.key, '.');
    const std::string name = path.back();
    path.pop_back();
    size_t common = 0;
    while (common < path.size() && common < open.size() &&
           path[common] == open[common]) {
      ++common;
    }
    open.resize(common);
    out += "\n";
    while (open.size() < path.size()) {
      const std::string indent(2 * open.size(), ' ');
      open.push_back(path[open.size()]);
      const std::string prefix = absl::StrJoin(open, ".");
      for (const SettingSection& section : SettingSections()) {
        if (section.prefix == prefix) {
          absl::StrAppend(&out, Comment(section.help, indent));
        }
      }
      absl::StrAppend(&out, indent, open.back(), ":\n");
    }
    const std::string indent(2 * open.size(), ' ');
    absl::StrAppend(
        &out, Comment(setting.help, indent),
        Comment(absl::StrCat("Allowed: ", setting.allowed, "."), indent));
    if (!setting.unit.empty()) {
      absl::StrAppend(
          &out, Comment(absl::StrCat("Unit: ", setting.unit, "."), indent));
    }
    if (!setting.default_note.empty()) {
      absl::StrAppend(
          &out, Comment(absl::StrCat("Default: ", setting.default_note, "."),
                        indent));
    }
    absl::StrAppend(&out, indent, "#", name, ": ", setting.get(defaults), "\n");
  }
  return out;
}

}  // namespace dfl::config
