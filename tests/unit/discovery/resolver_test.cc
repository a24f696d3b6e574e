#include "daemon/discovery/resolver.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::discovery {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// A DNS answer with one question and SRV records, by hand (RFC 1035, 2782).
class Answer {
 public:
  explicit Answer(int records) {
    Put16(1);       // id
    Put16(0x8180);  // a response without error
    Put16(1);       // question
    Put16(records);
    Put16(0);
    Put16(0);
    PutName({"_dfl", "_tcp", "x"});
    Put16(33);  // SRV
    Put16(1);   // IN
  }

  Answer& Srv(int priority, int weight, int port,
              const std::vector<std::string>& host) {
    PutName({"_dfl", "_tcp", "x"});
    Put16(33);
    Put16(1);
    Put16(0);
    Put16(60);  // time to live
    size_t name = 1;
    for (const std::string& label : host) name += label.size() + 1;
    Put16(static_cast<int>(6 + name));
    Put16(priority);
    Put16(weight);
    Put16(port);
    PutName(host);
    return *this;
  }

  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  void Put16(int value) {
    bytes_.push_back(static_cast<unsigned char>(value >> 8));
    bytes_.push_back(static_cast<unsigned char>(value & 255));
  }
  void PutName(const std::vector<std::string>& labels) {
    for (const std::string& label : labels) {
      bytes_.push_back(static_cast<unsigned char>(label.size()));
      bytes_.insert(bytes_.end(), label.begin(), label.end());
    }
    bytes_.push_back(0);
  }

  std::vector<unsigned char> bytes_;
};

std::vector<std::string> Texts(const std::vector<HostPort>& services) {
  std::vector<std::string> texts;
  for (const HostPort& service : services) texts.push_back(service.ToString());
  return texts;
}

TEST(ParseServices, OrdersByPriorityAndWeight) {
  Answer answer(3);
  answer.Srv(20, 9, 7601, {"c", "x"})
      .Srv(10, 1, 7602, {"b", "x"})
      .Srv(10, 5, 7603, {"a", "x"});
  const auto services = ParseServices(answer.bytes());
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_THAT(Texts(*services),
              ElementsAre("a.x:7603", "b.x:7602", "c.x:7601"));
}

TEST(ParseServices, AServiceThatIsDecidedlyNotThereIsNone) {
  EXPECT_TRUE(absl::IsNotFound(
      ParseServices(Answer(1).Srv(0, 0, 0, {}).bytes()).status()));
  EXPECT_TRUE(absl::IsNotFound(ParseServices(Answer(0).bytes()).status()));
}

TEST(ParseServices, NoCutOfAnAnswerIsTakenOrCrashes) {
  const std::vector<unsigned char> whole =
      Answer(2).Srv(1, 1, 7, {"a", "x"}).Srv(1, 1, 8, {"b", "x"}).bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<unsigned char> cut(
        whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(ParseServices(cut).ok()) << size;
  }
}

TEST(ParseServices, NoChangedByteCrashes) {
  const std::vector<unsigned char> whole =
      Answer(1).Srv(1, 1, 7, {"a", "x"}).bytes();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<unsigned char> changed = whole;
      changed[at] = static_cast<unsigned char>(value);
      (void)ParseServices(changed);
    }
  }
}

TEST(SystemResolver, KnowsWhatTheSystemKnows) {
  const Resolver resolver = SystemResolver();
  const auto addresses = resolver.addresses("localhost");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses, Contains(AnyOf("127.0.0.1", "::1")));
}

TEST(SystemResolver, SaysWhyANameHasNoAddress) {
  const auto addresses = SystemResolver().addresses("no-such-host.invalid");
  ASSERT_FALSE(addresses.ok());
  EXPECT_THAT(std::string(addresses.status().message()), Not(""));
}

}  // namespace
}  // namespace dfl::discovery
