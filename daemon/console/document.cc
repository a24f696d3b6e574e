#include "daemon/console/document.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"

namespace dfl::console {
namespace {

std::string Dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Text that YAML would read back as itself without quotes.
bool IsPlain(const std::string& text) {
  static const std::set<std::string> kWords = {
      "true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  if (text.empty() || kWords.count(absl::AsciiStrToLower(text)) > 0) {
    return false;
  }
  if (!absl::ascii_isalpha(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' ||
           c == '/';
  });
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get<std::string>())) {
    return value.get<std::string>();
  }
  return Dump(value, -1);
}

std::string Key(const std::string& key) {
  return IsPlain(key) ? key : Dump(Json(key), -1);
}

bool IsNested(const Json& value) {
  return (value.is_object() || value.is_array()) && !value.empty();
}

// A text of several lines as a literal block, where YAML can hold it so.
bool IsBlock(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() > 1 && text.back() == '\n' && text[0] != ' ' &&
         text[0] != '\n' && text[text.size() - 2] != '\n' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c == '\n' || (c >= 0x20 && c < 0x7F);
         });
}

void Write(const Json& value, int depth, bool in_list, std::string& out);

void WriteValue(const Json& value, int depth, std::string& out) {
  if (IsNested(value)) {
    out += "\n";
    Write(value, depth + 1, false, out);
  } else if (IsBlock(value)) {
    const std::string indent(static_cast<size_t>(2 * depth + 2), ' ');
    out += " |\n" + indent;
    const auto& text = value.get_ref<const std::string&>();
    for (size_t i = 0; i < text.size(); ++i) {
      out += text[i];
      if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n') {
        out += indent;
      }
    }
  } else {
    out += ' ';
    out += Scalar(value);
    out += '\n';
  }
}

// `in_list`: the first line stands after "- " already.
void Write(const Json& value, int depth, bool in_list, std::string& out) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  bool first = true;
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items()) {
      if (!(first && in_list)) out += indent;
      first = false;
      out += Key(key) + ":";
      WriteValue(item, depth, out);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const Json& item : value) {
      if (!(first && in_list)) out += indent;
      first = false;
      out += "-";
      if (IsNested(item)) {
        out += " ";
        Write(item, depth + 1, true, out);
      } else {
        WriteValue(item, depth, out);
      }
    }
  } else {
    out += Scalar(value) + "\n";
  }
}

}  // namespace

std::string ToJson(const Json& document) { return Dump(document, 2) + "\n"; }

std::string ToJsonLine(const Json& document) {
  return Dump(document, -1) + "\n";
}

std::string ToYaml(const Json& document) {
  std::string out;
  Write(document, 0, false, out);
  return out;
}

}  // namespace dfl::console
