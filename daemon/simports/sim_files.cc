#include "daemon/simports/sim_files.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::simports {
namespace {

void CheckName(const std::string& name) {
  DFL_CHECK(!name.empty());
  DFL_CHECK(!absl::StrContains(name, "/"));
}

}  // namespace

class SimFiles::Reader final : public ports::FileReader {
 public:
  Reader(const SimFiles& files, std::string content)
      : files_(files), content_(std::move(content)) {}

  int64_t size() const override {
    return static_cast<int64_t>(content_.size());
  }

  absl::Status Read(int64_t offset, absl::Span<char> out) override {
    DFL_RETURN_IF_ERROR(files_.failure_);
    if (offset < 0 || offset > size() ||
        static_cast<int64_t>(out.size()) > size() - offset) {
      return absl::OutOfRangeError(
          absl::StrCat("the file ends after ", size(), " bytes"));
    }
    content_.copy(out.data(), out.size(), static_cast<size_t>(offset));
    return absl::OkStatus();
  }

 private:
  const SimFiles& files_;
  const std::string content_;
};

class SimFiles::Writer final : public ports::FileWriter {
 public:
  Writer(SimFiles& files, std::string name)
      : files_(files), name_(std::move(name)) {}

  absl::Status Append(absl::string_view piece) override {
    if (!status_.ok()) return status_;
    status_ = files_.CheckRoom(name_, content_.size() + piece.size());
    if (status_.ok()) content_.append(piece.data(), piece.size());
    return status_;
  }
  absl::Status Commit() override {
    DFL_RETURN_IF_ERROR(status_);
    return files_.Put(name_, std::move(content_));
  }

 private:
  SimFiles& files_;
  const std::string name_;
  std::string content_;
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<ports::FileReader>> SimFiles::Open(
    const std::string& name) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  const auto found = contents_.find(name);
  if (found == contents_.end()) {
    return absl::NotFoundError(absl::StrCat("no file \"", name, "\""));
  }
  return std::make_unique<Reader>(*this, found->second);
}

absl::StatusOr<std::unique_ptr<ports::FileWriter>> SimFiles::Replace(
    const std::string& name) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  return std::make_unique<Writer>(*this, name);
}

absl::Status SimFiles::CheckRoom(const std::string& name, size_t bytes) const {
  DFL_RETURN_IF_ERROR(failure_);
  auto used = static_cast<int64_t>(bytes);
  for (const auto& [other, content] : contents_) {
    used += static_cast<int64_t>(content.size());
  }
  if (capacity_ < 0 || used <= capacity_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "writing \"", name, "\" (", bytes, " bytes): no space left on the disk"));
}

absl::Status SimFiles::Put(const std::string& name, std::string content) {
  DFL_RETURN_IF_ERROR(CheckRoom(name, content.size()));
  contents_[name] = std::move(content);
  last_written_ = name;
  ++writes_;
  if (!lies_) durable_ = contents_;
  return absl::OkStatus();
}

absl::Status SimFiles::Remove(const std::string& name) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  contents_.erase(name);
  if (!lies_) durable_ = contents_;
  return absl::OkStatus();
}

absl::Status SimFiles::Rename(const std::string& from, const std::string& to) {
  CheckName(from);
  CheckName(to);
  DFL_RETURN_IF_ERROR(failure_);
  const auto found = contents_.find(from);
  if (found == contents_.end()) {
    return absl::NotFoundError(absl::StrCat("no file \"", from, "\""));
  }
  std::string content = std::move(found->second);
  contents_.erase(found);
  contents_[to] = std::move(content);
  if (!lies_) durable_ = contents_;
  return absl::OkStatus();
}

void SimFiles::Crash(Rng& rng) {
  std::set<std::string> names;
  for (const auto& [name, content] : contents_) names.insert(name);
  for (const auto& [name, content] : durable_) names.insert(name);
  Contents after;
  for (const std::string& name : names) {
    const auto now = contents_.find(name);
    const auto old = durable_.find(name);
    const bool unsynced = now == contents_.end() || old == durable_.end() ||
                          now->second != old->second;
    const uint64_t fate = unsynced ? rng.Below(3) : 0;
    if (fate == 0) {
      if (now != contents_.end()) after[name] = now->second;
    } else if (fate == 1) {
      if (old != durable_.end()) after[name] = old->second;
    } else if (now != contents_.end()) {
      after[name] = now->second.substr(0, rng.Below(now->second.size() + 1));
    }
  }
  contents_ = after;
  durable_ = after;
}

void SimFiles::TearLastWrite() {
  const auto found = contents_.find(last_written_);
  if (found == contents_.end()) return;
  found->second.resize(found->second.size() / 2);
  durable_[last_written_] = found->second;
}

void SimFiles::Empty() {
  contents_.clear();
  durable_.clear();
  last_written_.clear();
}

void SimFiles::FlipBit(const std::string& name, int64_t bit) {
  const auto found = contents_.find(name);
  DFL_CHECK(found != contents_.end());
  DFL_CHECK(bit >= 0 && bit / 8 < static_cast<int64_t>(found->second.size()));
  found->second[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  durable_[name] = found->second;
}

std::vector<std::string> SimFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, content] : contents_) names.push_back(name);
  return names;
}

}  // namespace dfl::simports
