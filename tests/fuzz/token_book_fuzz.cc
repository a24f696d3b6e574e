// The file of an issuer's join tokens.
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/enrol/token_book.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

namespace fs = std::filesystem;

// A folder of this process, removed when it ends.
class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "dfl_fuzz_XXXXXX").string()) {
    DFL_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

  void Write(const std::string& name, absl::string_view bytes) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    DFL_CHECK(chmod(file.c_str(), 0600) == 0);
  }

 private:
  std::string path_;
};

}  // namespace

DFL_FUZZ_TARGET(token_book)(absl::string_view bytes) {
  static const Folder kFolder;
  kFolder.Write("tokens", bytes);
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const auto book = enrol::TokenBook::Open(kFolder.path());
  if (!book.ok()) {
    DFL_CHECK(absl::IsFailedPrecondition(book.status()));
    return;
  }
  DFL_CHECK(book->issuer().size() == 16);
  const auto entries = book->List(now);
  DFL_CHECK(entries.ok());
  for (const enrol::TokenEntry& entry : *entries) {
    DFL_CHECK(entry.id.size() <= 16);
    DFL_CHECK(!enrol::Name(entry.state).empty());
  }
  const auto never = [](const std::string& /*node*/) {
    return absl::InternalError("a token was redeemed without its secret");
  };
  const absl::Status redeemed = book->Redeem("guess", {"a", ""}, now, never);
  DFL_CHECK(absl::IsNotFound(redeemed));
  // Those that are open can be taken back.
  if (entries->empty()) return;
  (void)book->Revoke(entries->front().id, now);
  DFL_CHECK(book->List(now).ok());
}

}  // namespace dfl::fuzz
