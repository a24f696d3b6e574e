#include "daemon/learner/torch_errors.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace dfl::learner {
namespace {

// One line, without the stack that LibTorch likes to add.
std::string OneLine(absl::string_view message) {
  constexpr size_t kMaxLength = 600;
  message = message.substr(0, message.find("\nException raised from"));
  std::string line = absl::StrReplaceAll(absl::StripAsciiWhitespace(message),
                                         {{"\n", " "}, {"\t", " "}});
  absl::RemoveExtraAsciiWhitespace(&line);
  if (line.size() > kMaxLength) line = line.substr(0, kMaxLength) + "...";
  return line;
}

absl::Status Failure(absl::string_view what, absl::string_view message) {
  // LibTorch's allocators report want of memory as an ordinary error.
  if (absl::StrContains(message, "DefaultCPUAllocator") ||
      absl::StrContains(message, "out of memory")) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": not enough memory: ", OneLine(message),
                     "; a smaller batch or model needs less"));
  }
  return absl::InternalError(
      absl::StrCat(what, ": LibTorch failed: ", OneLine(message)));
}

}  // namespace

absl::Status NotTorchScript(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(
      "not a usable TorchScript file: ", status.message(),
      "; allowed: a whole file written by torch.jit.save of a version that "
      "this LibTorch reads"));
}

absl::Status Guarded(absl::string_view what,
                     const std::function<absl::Status()>& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    return Failure(what, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": not enough memory; a smaller batch or model needs less"));
  } catch (const std::exception& error) {
    return Failure(what, error.what());
  }
}

}  // namespace dfl::learner
