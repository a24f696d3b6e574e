#include "daemon/config/configuration_page.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/settings_table.h"

namespace dfl::config {
namespace {

constexpr absl::string_view kIntroduction = R"(# Configuration

Every setting of a node. This page is written from the code, as is
[deploy/dfld.yaml](../deploy/dfld.yaml), the same as a file to copy. What is the
same on all nodes is the run plan:
[deploy/plan.example.yaml](../deploy/plan.example.yaml).

A setting may stand in four places. The first one that has it counts:

| place | `control.socket` there |
| --- | --- |
| flag | `--control.socket=/run/x.sock` |
| variable | `DFLD_CONTROL_SOCKET=/run/x.sock` |
| `/etc/dfld/conf.d/*.yaml`, the last in order of names first | `control: {socket: /run/x.sock}` |
| `/etc/dfld/dfld.yaml`, or the file of `--config` | the same |

Lists are `[a, b]` in files, and `a,b` elsewhere. An unknown key is an error
that names the nearest one. `dfld --check` checks all of it, and reads the data.
`dflctl config show --effective --origin` says what is in force in a running
node, and from where it came.
)";

// Text for a cell of a table.
std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"|", "\\|"}, {"\n", " "}, {"<", "\\<"}, {"*", "\\*"}});
}

std::string SectionOf(absl::string_view key) {
  const size_t dot = key.rfind('.');
  return std::string(dot == absl::string_view::npos ? "" : key.substr(0, dot));
}

absl::string_view HelpOf(absl::string_view section) {
  for (const SettingSection& known : SettingSections()) {
    if (known.prefix == section) return known.help;
  }
  return "";
}

// `text` as a paragraph of at most 80 columns.
std::string Paragraph(absl::string_view text) {
  constexpr size_t kWidth = 80;
  std::string out;
  size_t column = 0;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > 0 && column + 1 + word.size() > kWidth) {
      out += "\n";
      column = 0;
    }
    absl::StrAppend(&out, column > 0 ? " " : "", word);
    column += (column > 0 ? 1 : 0) + word.size();
  }
  return out + "\n";
}

void AppendHeading(absl::string_view section, std::string& out) {
  absl::StrAppend(&out, "\n## ", section.empty() ? "The node" : section,
                  "\n\n");
  const absl::string_view help = HelpOf(section);
  if (!help.empty()) absl::StrAppend(&out, Paragraph(help), "\n");
  absl::StrAppend(&out,
                  "| key | default | allowed | meaning |\n"
                  "| --- | --- | --- | --- |\n");
}

}  // namespace

std::string ConfigurationPage() {
  const NodeSettings defaults;
  std::string out(kIntroduction);
  std::string open = "none yet";
  for (const Setting& setting : SettingsTable()) {
    const std::string section = SectionOf(setting.key);
    if (section != open) {
      AppendHeading(section, out);
      open = section;
    }
    absl::StrAppend(
        &out, "| `", setting.key, "` | ",
        setting.default_note.empty()
            ? absl::StrCat("`", setting.get(defaults), "`")
            : Cell(setting.default_note),
        " | ", Cell(setting.allowed),
        setting.unit.empty() ? "" : absl::StrCat(", ", setting.unit), " | ",
        Cell(setting.help), " |\n");
  }
  return out;
}

}  // namespace dfl::config
