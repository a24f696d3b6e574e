// The parameters of a linear model, from a daemon that trains it.
#ifndef DFL_TESTS_INTEGRATION_LINEAR_PARAMETERS_H_
#define DFL_TESTS_INTEGRATION_LINEAR_PARAMETERS_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {

// They are the one tensor of the exported file, after a header whose length the
// first eight bytes are. Empty when nothing was exported, which fails the test.
inline std::vector<float> LinearParameters(DaemonProcess& node) {
  std::string file;
  const auto exported = node.client().ExportModel(
      client::ModelFormat::kSafetensors, [&](absl::string_view data, int64_t) {
        file.append(data.data(), data.size());
        return absl::OkStatus();
      });
  EXPECT_TRUE(exported.ok()) << exported.status();
  if (file.size() < 8) return {};
  uint64_t header = 0;
  for (int i = 7; i >= 0; --i) {
    header = header << 8 | static_cast<unsigned char>(file[i]);
  }
  const size_t start = 8 + header;
  std::vector<float> values((file.size() - start) / sizeof(float));
  std::memcpy(values.data(), file.data() + start, values.size() * 4);
  return values;
}

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_INTEGRATION_LINEAR_PARAMETERS_H_
