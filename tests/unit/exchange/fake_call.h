// A call that a test drives by hand.
#ifndef DFL_TESTS_UNIT_EXCHANGE_FAKE_CALL_H_
#define DFL_TESTS_UNIT_EXCHANGE_FAKE_CALL_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/exchange/stream.h"
#include "gtest/gtest.h"

namespace dfl::exchange {

class FakeCall final : public Call {
 public:
  void Read() override {
    EXPECT_EQ(ends, 0);
    EXPECT_FALSE(reading);
    reading = true;
  }
  void Write(StreamMessage message) override {
    EXPECT_EQ(ends, 0);
    EXPECT_FALSE(writing);
    writing = true;
    written.push_back(std::move(message));
  }
  void End(const absl::Status& s, Ending e) override {
    ++ends;
    status = s;
    ending = e;
  }

  bool reading = false;
  bool writing = false;
  std::vector<StreamMessage> written;
  int ends = 0;
  absl::Status status;
  Ending ending = Ending::kDone;
};

}  // namespace dfl::exchange

#endif  // DFL_TESTS_UNIT_EXCHANGE_FAKE_CALL_H_
