#include "daemon/console/table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "daemon/base/one_line.h"

namespace dfl::console {
namespace {

// Characters of UTF-8 text; good enough for columns.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Printable(const std::string& text) { return OneLineMarked(text); }

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    right_.push_back(!title.empty() && title[0] == '>');
    if (right_.back()) title.erase(0, 1);
  }
}

void Table::Add(std::vector<std::string> row) {
  row.resize(titles_.size());
  for (std::string& cell : row) cell = Printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::ToString() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < titles_.size(); ++i) {
    size_t width = Width(titles_[i]);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - Width(row[i]), ' ');
      if (i > 0) text += "  ";
      text += right_[i] ? pad + row[i] : row[i] + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(titles_);
  for (const auto& row : rows_) line(row);
  return out;
}

std::string KeyValueLines(
    const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t width = 0;
  for (const auto& [key, value] : lines) width = std::max(width, Width(key));
  std::string out;
  for (const auto& [key, value] : lines) {
    std::string text =
        key + std::string(width - Width(key) + 2, ' ') + Printable(value);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace dfl::console
