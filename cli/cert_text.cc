#include "cli/cert_text.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/tls/identity.h"

namespace dfl::cli {

using tls::Certificate;
using tls::Identity;

int64_t DaysLeft(const Certificate& certificate) {
  return absl::Floor(certificate.not_after() - absl::Now(), absl::Hours(24)) /
         absl::Hours(24);
}

std::string DateState(const Certificate& certificate) {
  const absl::Time now = absl::Now();
  if (now < certificate.not_before()) return "not-yet-valid";
  return now < certificate.not_after() ? "valid" : "expired";
}

std::string BundleState(const Certificate& certificate,
                        const std::vector<Certificate>& bundle) {
  const tls::ChainVerdict verdict =
      tls::VerifyChain({certificate}, bundle, absl::Now());
  return verdict.ok() ? "valid" : std::string(tls::Name(verdict.fault));
}

std::string IdentityText(const Certificate& certificate) {
  return certificate.uri().ok() ? *certificate.uri() : "-";
}

Json CertificateJson(const Certificate& certificate, const std::string& state) {
  const auto time = [](absl::Time value) {
    return absl::FormatTime(absl::RFC3339_sec, value, absl::UTCTimeZone());
  };
  Json json{{"identity", certificate.uri().ok() ? Json(*certificate.uri())
                                                : Json(nullptr)}};
  if (certificate.identity().ok()) {
    const Identity& identity = *certificate.identity();
    json["cluster"] = identity.cluster;
    json["role"] = std::string(tls::Name(identity.role));
    json["name"] = identity.name;
  }
  json["state"] = state;
  json["days_left"] = DaysLeft(certificate);
  json["not_before"] = time(certificate.not_before());
  json["not_after"] = time(certificate.not_after());
  json["authority"] = certificate.is_authority();
  json["subject"] = certificate.subject();
  json["issuer"] = certificate.issuer();
  json["serial"] = certificate.serial();
  json["key"] = certificate.key().name;
  json["fingerprint"] = certificate.fingerprint();
  return json;
}

std::string CertificateText(const Certificate& certificate) {
  const absl::StatusOr<Identity>& identity = certificate.identity();
  const bool unfit = !certificate.is_authority() && !identity.ok();
  return KeyValueLines(
      {{"identity", unfit ? absl::StrCat("none: ", identity.status().message())
                          : Printable(IdentityText(certificate))},
       {"state", DateState(certificate)},
       {"valid from", tls::TimeText(certificate.not_before())},
       {"valid until",
        absl::StrCat(tls::TimeText(certificate.not_after()), " (",
                     DaysLeft(certificate), " days left)")},
       {"authority", certificate.is_authority() ? "yes" : "no"},
       {"subject", certificate.subject()},
       {"issuer", certificate.issuer()},
       {"serial", certificate.serial()},
       {"key", certificate.key().name},
       {"SHA-256", certificate.fingerprint()}});
}

void PrintWritten(Context& context, const std::string& folder,
                  const Certificate& certificate,
                  const std::vector<WrittenFile>& files) {
  Json json{
      {"folder", folder},
      {"certificate", CertificateJson(certificate, DateState(certificate))},
      {"files", Json::array()}};
  for (const WrittenFile& file : files) {
    json["files"].push_back(Json{{"path", file.path}, {"what", file.what}});
  }
  context.Print(json, [&] {
    Table table({"FILE", "WHAT"});
    for (const WrittenFile& file : files) table.Add({file.path, file.what});
    return table.ToString();
  });
}

}  // namespace dfl::cli
