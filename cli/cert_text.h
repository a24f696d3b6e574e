// What dflctl tells of a certificate.
#ifndef DFL_CLI_CERT_TEXT_H_
#define DFL_CLI_CERT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cert_files.h"
#include "cli/console.h"
#include "cli/context.h"
#include "daemon/tls/certificate.h"

namespace dfl::cli {

// Whole days from now to its end, rounded down: negative when it has expired.
int64_t DaysLeft(const tls::Certificate& certificate);

// "valid", "expired" or "not-yet-valid", by its dates alone.
std::string DateState(const tls::Certificate& certificate);
// "valid", or the name of what tls::VerifyChain finds.
std::string BundleState(const tls::Certificate& certificate,
                        const std::vector<tls::Certificate>& bundle);

// Its URI; "-" when there is none.
std::string IdentityText(const tls::Certificate& certificate);

Json CertificateJson(const tls::Certificate& certificate,
                     const std::string& state);
// Lines of keys and values.
std::string CertificateText(const tls::Certificate& certificate);

// Prints what a command wrote into the network's folder, and the certificate
// that it is about.
void PrintWritten(Context& context, const std::string& folder,
                  const tls::Certificate& certificate,
                  const std::vector<WrittenFile>& files);

}  // namespace dfl::cli

#endif  // DFL_CLI_CERT_TEXT_H_
