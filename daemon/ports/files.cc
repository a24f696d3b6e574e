#include "daemon/ports/files.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::ports {

absl::StatusOr<std::string> Files::Read(const std::string& name) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> file, Open(name));
  if (file->size() > kMaxWholeBytes) {
    return absl::InternalError(absl::StrCat(name, ": longer than ",
                                            kMaxWholeBytes,
                                            " bytes: not a file of dfld's"));
  }
  std::string content(static_cast<size_t>(file->size()), '\0');
  DFL_RETURN_IF_ERROR(
      file->Read(0, absl::MakeSpan(content.data(), content.size())));
  return content;
}

absl::Status Files::WriteAtomically(const std::string& name,
                                    absl::string_view content) {
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file, Replace(name));
  DFL_RETURN_IF_ERROR(file->Append(content));
  return file->Commit();
}

}  // namespace dfl::ports
