// SHA-256, for fingerprints of models, plans and files.
#ifndef DFL_BASE_SHA256_H_
#define DFL_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace dfl {

// Feeds bytes piece by piece. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(absl::string_view data);

  // The digest as 64 lower-case hexadecimal digits. Call once.
  std::string HexDigest();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// The digest of `data` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(absl::string_view data);

}  // namespace dfl

#endif  // DFL_BASE_SHA256_H_
