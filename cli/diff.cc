#include "cli/diff.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/console.h"

namespace dfl::cli {
namespace {

struct Line {
  char mark = ' ';
  absl::string_view text;
};

std::vector<absl::string_view> Lines(absl::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

// The script of a longest common subsequence of what lies between the common
// beginning and end. A middle too long for that counts as wholly replaced.
std::vector<Line> Script(const std::vector<absl::string_view>& a,
                         const std::vector<absl::string_view>& b) {
  constexpr size_t kMaxCells = size_t{1} << 22;
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  const size_t rows = a.size() - head - tail;
  const size_t columns = b.size() - head - tail;
  std::vector<Line> script;
  for (size_t i = 0; i < head; ++i) script.push_back({' ', a[i]});
  size_t i = 0;
  size_t j = 0;
  if ((rows + 1) * (columns + 1) <= kMaxCells) {
    // longest[i][j]: of a[i..] and b[j..].
    std::vector<std::vector<int>> longest(rows + 1,
                                          std::vector<int>(columns + 1, 0));
    for (size_t r = rows; r-- > 0;) {
      for (size_t c = columns; c-- > 0;) {
        longest[r][c] = a[head + r] == b[head + c]
                            ? longest[r + 1][c + 1] + 1
                            : std::max(longest[r + 1][c], longest[r][c + 1]);
      }
    }
    while (i < rows && j < columns) {
      if (a[head + i] == b[head + j]) {
        script.push_back({' ', a[head + i]});
        ++i;
        ++j;
      } else if (longest[i + 1][j] >= longest[i][j + 1]) {
        script.push_back({'-', a[head + i++]});
      } else {
        script.push_back({'+', b[head + j++]});
      }
    }
  }
  for (; i < rows; ++i) script.push_back({'-', a[head + i]});
  for (; j < columns; ++j) script.push_back({'+', b[head + j]});
  for (size_t t = a.size() - tail; t < a.size(); ++t) {
    script.push_back({' ', a[t]});
  }
  return script;
}

}  // namespace

std::string LineDiff(absl::string_view before, absl::string_view after,
                     bool color, int around) {
  if (before == after) return "";
  const std::vector<Line> script = Script(Lines(before), Lines(after));
  const int size = static_cast<int>(script.size());
  std::vector<bool> shown(script.size(), false);
  for (int i = 0; i < size; ++i) {
    if (script[i].mark == ' ') continue;
    for (int j = std::max(0, i - around); j <= std::min(size - 1, i + around);
         ++j) {
      shown[j] = true;
    }
  }
  std::string out;
  bool gap = false;
  for (int i = 0; i < size; ++i) {
    if (!shown[i]) {
      gap = true;
      continue;
    }
    if (gap) out += "  ...\n";
    gap = false;
    const Line& line = script[i];
    const bool painted = color && line.mark != ' ';
    absl::StrAppend(
        &out, painted ? (line.mark == '-' ? "\x1b[31m" : "\x1b[32m") : "",
        std::string(1, line.mark), " ", Printable(std::string(line.text)),
        painted ? "\x1b[0m" : "", "\n");
  }
  if (gap) out += "  ...\n";
  return out;
}

}  // namespace dfl::cli
