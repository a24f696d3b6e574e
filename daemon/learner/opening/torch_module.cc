#include "daemon/learner/opening/torch_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::learner {
namespace {

constexpr char kFile[] = "dfld-torch.so";

absl::Status CannotOpen(const std::string& file, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("LibTorch's learner ", file, " cannot be opened: ", why));
}

}  // namespace

std::vector<std::string> TorchModulePlaces() {
  const char* const named = std::getenv(kTorchModuleVariable);
  if (named != nullptr && *named != '\0') return {named};
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  // An absolute DFL_MODULE_FOLDER stands alone.
  const std::filesystem::path installed =
      (folder / DFL_MODULE_FOLDER).lexically_normal();
  return {(folder / kFile).string(), (installed / kFile).string()};
}

absl::StatusOr<const TorchInterface*> OpenTorchModule(
    const std::vector<std::string>& places) {
  for (const std::string& file : places) {
    if (::access(file.c_str(), F_OK) != 0) continue;
    // RTLD_NOW: a LibTorch of another version is told here, and not by the end
    // of the process in the first step.
    void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      return CannotOpen(
          file, absl::StrCat(::dlerror(),
                             "; install the LibTorch that it was built for "
                             "(Debian: what the package dfld-torch depends "
                             "on)"));
    }
    const auto open =
        reinterpret_cast<OpenTorchInterface*>(::dlsym(module, kTorchSymbol));
    if (open == nullptr) {
      return CannotOpen(file, absl::StrCat("it has no symbol ", kTorchSymbol,
                                           "; allowed: the file that was "
                                           "installed with this program"));
    }
    const std::string version = TorchInterfaceVersion();
    const char* own = "";
    const TorchInterface* const torch = open(version.c_str(), &own);
    if (torch != nullptr) return torch;
    return CannotOpen(file, absl::StrCat("it is of another build (\"", own,
                                         "\"; this program is \"", version,
                                         "\"); install both from one build"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "LibTorch's learner is not installed: there is no ",
      absl::StrJoin(places, " and no "),
      "; install the package dfld-torch, or build dfld with -DDFL_TORCH=ON"));
}

}  // namespace dfl::learner
