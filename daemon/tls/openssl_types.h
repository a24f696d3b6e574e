// Owners of OpenSSL's objects, for the sources of this room. Headers that other
// rooms see only declare the types.
#ifndef DFL_TLS_OPENSSL_TYPES_H_
#define DFL_TLS_OPENSSL_TYPES_H_

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace dfl::tls {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using BignumPtr = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using EvpKeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using ExtensionPtr =
    std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContextPtr =
    std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

// Reads `text`, which must outlive it.
BioPtr ReadBio(absl::string_view text);
BioPtr WriteBio();
// What was written to a WriteBio.
std::string Written(BIO* bio);

// For PEM_read_bio_*: an encrypted block is an error. Without it OpenSSL asks
// whoever sits at the terminal for a pass phrase, and waits.
int NoPassPhrase(char* buffer, int size, int writing, void* unused);

// The reason of the oldest error that OpenSSL has queued for this thread, "no
// reason given" if there is none. Empties the queue.
std::string TakeOpenSslError();

// INTERNAL "cannot DOING: REASON".
absl::Status OpenSslError(absl::string_view doing);

absl::Time ToTime(const ASN1_TIME* time);

}  // namespace dfl::tls

#endif  // DFL_TLS_OPENSSL_TYPES_H_
