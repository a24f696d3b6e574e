#include "proto/grpc_status.h"

#include <string>

#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(GrpcStatus, CodesAndTextsComeBack) {
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(GrpcStatus, ALongTextIsCutBetweenCharacters) {
  const std::string text = std::string(1999, 'x') + "\xC3\xA4" + "more";
  EXPECT_EQ(ToGrpc(absl::InternalError(text)).error_message(),
            std::string(1999, 'x') + " ...");
  const std::string fits(2000, 'x');
  EXPECT_EQ(ToGrpc(absl::InternalError(fits)).error_message(), fits);
}

}  // namespace
}  // namespace dfl
