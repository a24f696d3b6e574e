// A queue that is short most of the time: one block of memory, which it keeps,
// where std::deque has a map and a block of 512 bytes even when it is empty.
#ifndef DFL_BASE_FIFO_H_
#define DFL_BASE_FIFO_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace dfl {

// push and pop take amortised constant time. T is movable.
template <typename T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  size_t size() const { return items_.size() - first_; }

  void push(T item) { items_.push_back(std::move(item)); }

  // Neither may be called when it is empty.
  const T& front() const { return items_[first_]; }
  T pop() {
    T item = std::move(items_[first_]);
    ++first_;
    if (empty()) {
      clear();
    } else if (first_ > 32 && first_ > size()) {
      items_.erase(items_.begin(),
                   items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }

  void clear() {
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t first_ = 0;  // those before have left
};

}  // namespace dfl

#endif  // DFL_BASE_FIFO_H_
