#include "daemon/base/try_listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(TryListen, TellsWhatStandsAgainstIt) {
  EXPECT_TRUE(TryListen({"127.0.0.1", 0}).ok());
  EXPECT_EQ(TryListen({"192.0.2.77", 0}).error, EADDRNOTAVAIL);
  const ListenFailure unknown = TryListen({"no-such-host.invalid", 7400});
  EXPECT_NE(unknown.resolve_error, 0);
  EXPECT_EQ(unknown.error, 0);
  EXPECT_STRNE(unknown.text(), "");
}

TEST(TryListen, APortThatIsListenedOnIsInUseAndFreeAfterwards) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(fd, generic, sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(fd, generic, &size), 0);
  const HostPort taken{"127.0.0.1", ntohs(address.sin_port)};
  EXPECT_EQ(TryListen(taken).error, EADDRINUSE);
  close(fd);
  EXPECT_TRUE(TryListen(taken).ok());
}

}  // namespace
}  // namespace dfl
