#include "daemon/tls/openssl_types.h"

#include <openssl/err.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"

namespace dfl::tls {

BioPtr ReadBio(absl::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

BioPtr WriteBio() { return BioPtr(BIO_new(BIO_s_mem())); }

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

int NoPassPhrase(char* /*buffer*/, int /*size*/, int /*writing*/,
                 void* /*unused*/) {
  return -1;
}

std::string TakeOpenSslError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

absl::Status OpenSslError(absl::string_view doing) {
  return absl::InternalError(
      absl::StrCat("cannot ", doing, ": ", TakeOpenSslError()));
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::InfinitePast();
  }
  return absl::FromCivil(
      absl::CivilSecond(parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                        parts.tm_hour, parts.tm_min, parts.tm_sec),
      absl::UTCTimeZone());
}

}  // namespace dfl::tls
