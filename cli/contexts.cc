#include "cli/contexts.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/cert_folder.h"
#include "cli/console.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"

namespace dfl::cli {
namespace {

constexpr size_t kMaxFile = 1 << 20;
constexpr size_t kMaxName = 64;

bool IsTexts(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(),
                     [](const Json& item) { return item.is_string(); });
}

}  // namespace

absl::StatusOr<Contexts> Contexts::Load(const Environment& environment) {
  const absl::StatusOr<std::string> folder =
      NetworksFolder(environment, "XDG_CONFIG_HOME");
  if (!folder.ok()) return Contexts("");
  Contexts contexts(absl::StrCat(*folder, "/contexts.json"));
  if (access(contexts.path_.c_str(), F_OK) != 0) return contexts;
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(contexts.path_, kMaxFile));
  DFL_RETURN_IF_ERROR(contexts.Parse(text));
  return contexts;
}

absl::Status Contexts::Parse(const std::string& text) {
  const auto damaged = [this](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " is damaged: ", what,
                     "; mend it, or remove it and add the contexts again with "
                     "`dflctl context add`"));
  };
  const Json document =
      Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return damaged("it is no JSON object");
  const auto contexts = document.find("contexts");
  if (contexts == document.end() || !contexts->is_object()) {
    return damaged("it has no object \"contexts\"");
  }
  for (const auto& [name, value] : contexts->items()) {
    NamedContext context;
    if (!value.is_object() || !value.contains("targets") ||
        !IsTexts(value["targets"])) {
      return damaged(
          absl::StrCat("context \"", name, "\" has no list of \"targets\""));
    }
    for (const Json& target : value["targets"]) {
      context.targets.push_back(target.get<std::string>());
    }
    if (value.contains("identity")) {
      if (!value["identity"].is_string()) {
        return damaged(
            absl::StrCat("the identity of context \"", name, "\" is no text"));
      }
      context.identity = value["identity"].get<std::string>();
    }
    all_[name] = std::move(context);
  }
  const auto current = document.find("current");
  if (current != document.end() && current->is_string()) {
    current_ = current->get<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedContext> Contexts::Find(const std::string& who,
                                            const std::string& name) const {
  const auto found = all_.find(name);
  if (found != all_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, context] : all_) known.push_back(other);
  if (known.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": there is no context \"", name,
                     "\", and no other; make one with `dflctl context add ",
                     name, " --target HOST:PORT`"));
  }
  return UnknownNameError(who, name, known);
}

absl::Status Contexts::Put(const std::string& name, NamedContext context) {
  const bool good =
      !name.empty() && name.size() <= kMaxName && name[0] != '-' &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
      });
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat(
        "context \"", name, "\": a name has 1 to ", kMaxName,
        " letters, digits, '.', '-' and '_', and begins with no '-'"));
  }
  if (all_.empty()) current_ = name;
  all_[name] = std::move(context);
  return absl::OkStatus();
}

absl::Status Contexts::Use(const std::string& name) {
  DFL_RETURN_IF_ERROR(Find("context", name).status());
  current_ = name;
  return absl::OkStatus();
}

absl::Status Contexts::Remove(const std::string& name) {
  DFL_RETURN_IF_ERROR(Find("context", name).status());
  all_.erase(name);
  if (current_ == name) current_.clear();
  return absl::OkStatus();
}

absl::Status Contexts::Save() const {
  if (path_.empty()) {
    return absl::FailedPreconditionError(
        "there is no place for contexts: neither XDG_CONFIG_HOME nor HOME is "
        "set; set one of them");
  }
  Json contexts = Json::object();
  for (const auto& [name, context] : all_) {
    Json entry{{"targets", context.targets}};
    if (!context.identity.empty()) entry["identity"] = context.identity;
    contexts[name] = std::move(entry);
  }
  const Json document{{"current", current_.empty() ? Json() : Json(current_)},
                      {"contexts", std::move(contexts)}};
  DFL_RETURN_IF_ERROR(MakePrivateFolder(path_.substr(0, path_.rfind('/'))));
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       AtomicFile::CreatePrivate(
                           path_, absl::StrCat(path_, ".", getpid(), ".new")));
  DFL_RETURN_IF_ERROR(file->Append(ToJson(document)));
  return file->Commit();
}

}  // namespace dfl::cli
