// The certificate and key of a person, out of a folder. Not installed.
#ifndef DFL_CLIENT_PERSON_H_
#define DFL_CLIENT_PERSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/tls/credentials.h"

namespace dfl {
namespace client {

// What ca.pem, cert.pem and key.pem of `folder` hold, checked at the time
// `now`: a viewer's, operator's or admin's certificate that ca.pem vouches for,
// and its key.
// Errors: as tls::CheckCredentials; FAILED_PRECONDITION also when it is a
// node's.
absl::StatusOr<tls::Credentials> LoadPerson(const std::string& folder,
                                            absl::Time now);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_PERSON_H_
