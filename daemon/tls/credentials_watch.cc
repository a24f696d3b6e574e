#include "daemon/tls/credentials_watch.h"

#include <utility>

#include "absl/status/statusor.h"

namespace dfl::tls {

CredentialsWatch::CredentialsWatch(Identity expected, uint32_t reader)
    : expected_(std::move(expected)), reader_(reader) {}

bool CredentialsWatch::HoldsCurrent(const CredentialFiles& files) const {
  return current_ != nullptr && current_->bundle_pem == files.bundle.content &&
         current_->chain_pem == files.certificate.content &&
         current_->key_pem == files.key.content;
}

CredentialsWatch::News CredentialsWatch::Look(const CredentialFiles& files,
                                              absl::Time now) {
  absl::StatusOr<Credentials> found =
      CheckCredentials(files, expected_, now, reader_);
  status_ = found.status();
  if (found.ok()) {
    refused_files_.reset();
    if (HoldsCurrent(files)) return News::kNone;
    current_ = std::make_shared<const Credentials>(*std::move(found));
    return News::kAdopted;
  }
  if (refused_files_ == files && refused_code_ == status_.code()) {
    return News::kNone;
  }
  refused_files_ = files;
  refused_code_ = status_.code();
  return News::kRefused;
}

}  // namespace dfl::tls
