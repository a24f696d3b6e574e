#include "daemon/console/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace dfl::console {

size_t Processors() {
  return std::max<size_t>(1, std::thread::hardware_concurrency());
}

void SideBySide(size_t count, size_t jobs,
                const std::function<void(size_t)>& work,
                const std::function<bool()>& go_on) {
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    while (go_on()) {
      const size_t place = next++;
      if (place >= count) return;
      work(place);
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(jobs, count); ++i) others.emplace_back(take);
  take();
  for (std::thread& other : others) other.join();
}

}  // namespace dfl::console
