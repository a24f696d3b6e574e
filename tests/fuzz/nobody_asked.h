// Nobody is there to be asked for a pass phrase: bytes from outside that make
// OpenSSL ask for one are a finding.
#ifndef DFL_TESTS_FUZZ_NOBODY_ASKED_H_
#define DFL_TESTS_FUZZ_NOBODY_ASKED_H_

#include <openssl/ui.h>

#include "daemon/base/check.h"

namespace dfl::fuzz {

inline int Asked(UI* /*ui*/) {
  DFL_CHECK(!"a decoder asks a person for a pass phrase");
  return 0;
}

inline void LetNobodyBeAsked() {
  static UI_METHOD* const kMethod = UI_create_method("nobody");
  UI_method_set_opener(kMethod, Asked);
  UI_set_default_method(kMethod);
}

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_NOBODY_ASKED_H_
