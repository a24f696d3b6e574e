// A table of text in aligned columns, two blanks between them.
#ifndef DFL_CONSOLE_TABLE_H_
#define DFL_CONSOLE_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace dfl::console {

class Table {
 public:
  // A title that begins with '>' makes a right-aligned column.
  explicit Table(std::vector<std::string> titles);

  // Missing cells are empty.
  void Add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }

  // The lines with their line ends, without trailing blanks. Control characters
  // in cells, which come from other machines, become '?'.
  std::string ToString() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// "name    value" lines.
std::string KeyValueLines(
    const std::vector<std::pair<std::string, std::string>>& lines);

// `text` fit for a terminal: control characters, and others that do not show,
// become '?'.
std::string Printable(const std::string& text);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_TABLE_H_
