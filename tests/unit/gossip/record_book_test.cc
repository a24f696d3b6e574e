// Which record counts, and that a restart changes nothing about it.
#include "daemon/runtime/gossip/record_book.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/rng.h"
#include "daemon/simports/sim_files.h"
#include "gtest/gtest.h"
#include "tests/unit/gossip/fake_judge.h"

namespace dfl::runtime {
namespace {

using Answer = RecordBook::Answer;

class RecordBookTest : public testing::Test {
 protected:
  RecordBookTest() { Restart(); }

  void Restart() {
    book_ = std::make_unique<RecordBook>(judge_, &files_);
    const absl::StatusOr<std::string> loaded = book_->Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    note_ = *loaded;
  }
  Answer Offer(const FakeRecord& record) {
    const absl::StatusOr<Answer> answer = book_->Offer(Opened(record));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : Answer::kOlder;
  }
  // "kind.counter:author[scope]" of each that counts.
  std::string Current() const {
    return absl::StrJoin(
        book_->current(), " ",
        [](std::string* out, const RecordBook::Held& held) {
          absl::StrAppend(out, held.record->id.kind, ".",
                          held.record->id.counter, ":", held.record->author);
          if (!held.record->scope.empty()) {
            absl::StrAppend(out, "[", absl::StrJoin(held.record->scope, ","),
                            "]");
          }
        });
  }
  std::string History() const {
    return absl::StrJoin(book_->history(), " ",
                         [](std::string* out, const PastRecord& past) {
                           absl::StrAppend(out, past.id.kind, ".",
                                           past.id.counter, ":", past.author);
                         });
  }

  FakeJudge judge_;
  simports::SimFiles files_;
  std::unique_ptr<RecordBook> book_;
  std::string note_;
};

TEST_F(RecordBookTest, TheLargerCounterCounts) {
  EXPECT_EQ(Offer({.counter = 2}), Answer::kTaken);
  EXPECT_EQ(Offer({.counter = 2}), Answer::kUnchanged);
  EXPECT_EQ(Offer({.counter = 1}), Answer::kOlder);
  EXPECT_EQ(Offer({.counter = 3, .author = "bob"}), Answer::kTaken);
  EXPECT_EQ(Offer({.counter = 2}), Answer::kOlder);
  EXPECT_EQ(Current(), "1.3:bob");
  EXPECT_EQ(History(), "1.2:ann");
  // Each kind and subject has its own.
  EXPECT_EQ(Offer({.kind = 3, .subject = "b", .counter = 1}), Answer::kTaken);
  EXPECT_EQ(Offer({.kind = 3, .subject = "a", .counter = 9}), Answer::kTaken);
  EXPECT_EQ(Current(), "1.3:bob 3.9:ann 3.1:ann");
}

TEST_F(RecordBookTest, OfOneCounterTheLargerHashCountsAndTheLoserIsKept) {
  FakeRecord a{.counter = 7, .author = "ann"};
  FakeRecord b{.counter = 7, .author = "bob"};
  if (IdOf(a).hash > IdOf(b).hash) std::swap(a, b);
  EXPECT_EQ(Offer(a), Answer::kTaken);
  EXPECT_EQ(Offer(b), Answer::kTaken);
  EXPECT_EQ(Current(), "1.7:" + b.author);
  EXPECT_EQ(History(), "1.7:" + a.author);
  // In the other order it ends the same.
  files_.Empty();
  Restart();
  EXPECT_EQ(Offer(b), Answer::kTaken);
  EXPECT_EQ(Offer(a), Answer::kOlder);
  EXPECT_EQ(Current(), "1.7:" + b.author);
  EXPECT_EQ(History(), "1.7:" + a.author);
  Restart();
  EXPECT_EQ(History(), "1.7:" + a.author);
}

TEST_F(RecordBookTest, AnOrderToSomeLeavesThatToTheOthers) {
  EXPECT_EQ(Offer({.kind = 2, .counter = 1}), Answer::kTaken);
  EXPECT_EQ(Offer({.kind = 2, .counter = 3, .scope = {"a", "b"}}),
            Answer::kTaken);
  EXPECT_EQ(Offer({.kind = 2, .counter = 2, .scope = {"b", "c"}}),
            Answer::kTaken);
  EXPECT_EQ(Current(), "2.3:ann[a,b] 2.2:ann[b,c] 2.1:ann");
  // b of the second is taken, and now c.
  EXPECT_EQ(Offer({.kind = 2, .counter = 4, .scope = {"c"}}), Answer::kTaken);
  EXPECT_EQ(Current(), "2.4:ann[c] 2.3:ann[a,b] 2.1:ann");
  EXPECT_EQ(Offer({.kind = 2, .counter = 2, .scope = {"a", "c"}}),
            Answer::kOlder);
  EXPECT_EQ(Offer({.kind = 2, .counter = 5}), Answer::kTaken);
  EXPECT_EQ(Current(), "2.5:ann");
  EXPECT_EQ(History(), "2.2:ann 2.4:ann 2.3:ann 2.1:ann");
}

// All nodes agree, whatever order the records come in.
TEST_F(RecordBookTest, TheOrderOfArrivalDoesNotMatter) {
  Rng rng(7);
  std::vector<FakeRecord> records;
  for (int i = 0; i < 12; ++i) {
    FakeRecord record{.kind = static_cast<int32_t>(1 + rng.Below(3)),
                      .counter = 1 + rng.Below(5),
                      .author = absl::StrCat("author-", i)};
    if (record.kind == 3) record.subject = absl::StrCat(rng.Below(2));
    if (record.kind == 2 && rng.Bernoulli(0.7)) {
      record.scope = {absl::StrCat("n", rng.Below(3)),
                      absl::StrCat("m", rng.Below(3))};
    }
    records.push_back(record);
  }
  std::string first;
  for (int round = 0; round < 50; ++round) {
    for (size_t i = records.size(); i > 1; --i) {
      std::swap(records[i - 1], records[rng.Below(i)]);
    }
    files_.Empty();
    Restart();
    for (const FakeRecord& record : records) {
      ASSERT_TRUE(book_->Offer(Opened(record)).ok());
    }
    if (round == 0) first = Current();
    ASSERT_EQ(Current(), first) << "round " << round;
  }
}

TEST_F(RecordBookTest, NamesTellWhatIsWanted) {
  const FakeRecord plan{.counter = 5};
  Offer({.kind = 1, .counter = 4});
  Offer(plan);
  EXPECT_FALSE(book_->Wants(IdOf(plan)));
  EXPECT_FALSE(book_->Wants(IdOf({.counter = 4})));  // replaced
  EXPECT_FALSE(book_->Wants(IdOf({.counter = 3})));
  EXPECT_TRUE(book_->Wants(IdOf({.counter = 6})));
  EXPECT_TRUE(book_->Wants(IdOf({.kind = 3, .subject = "a"})));
  // An order to some may be one to others than those that are known.
  Offer({.kind = 2, .counter = 2});
  Offer({.kind = 2, .counter = 9, .scope = {"a"}});
  EXPECT_TRUE(book_->Wants(IdOf({.kind = 2, .counter = 3, .scope = {"b"}})));
  EXPECT_FALSE(book_->Wants(IdOf({.kind = 2, .counter = 1, .scope = {"b"}})));
}

TEST_F(RecordBookTest, ALostTrustEndsNoOrderAndBringsNoneBack) {
  const FakeRecord unban{.kind = 3,
                         .subject = "thief",
                         .counter = 1,
                         .unix_nanos = 100,
                         .author = "bob"};
  const FakeRecord ban{.kind = 3,
                       .subject = "thief",
                       .counter = 2,
                       .unix_nanos = 200,
                       .author = "ann"};
  Offer(unban);
  Offer(ban);
  judge_.Shun("ann");
  EXPECT_FALSE(book_->Recheck());
  ASSERT_EQ(book_->current().size(), 1U);
  EXPECT_FALSE(book_->current()[0].trusted);
  EXPECT_EQ(Current(), "3.2:ann");
  // What was replaced stays so, though its author is still trusted.
  EXPECT_EQ(Offer(unban), Answer::kOlder);
  EXPECT_EQ(Current(), "3.2:ann");
  Restart();
  EXPECT_EQ(Current(), "3.2:ann");
  EXPECT_FALSE(book_->current()[0].trusted);
  judge_.Pardon("ann");
  EXPECT_TRUE(book_->Recheck());
  EXPECT_TRUE(book_->current()[0].trusted);
}

TEST_F(RecordBookTest, AThiefOfAKeyMakesNoOrderThatCannotBeTakenBack) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  Offer({.counter = most, .unix_nanos = 200, .author = "thief"});
  const FakeRecord cure{.counter = 5, .unix_nanos = 300, .author = "bob"};
  EXPECT_FALSE(book_->Wants(IdOf(cure)));
  EXPECT_EQ(Offer(cure), Answer::kOlder);
  judge_.Shun("thief");
  book_->Recheck();
  EXPECT_TRUE(book_->Wants(IdOf(cure)));
  EXPECT_EQ(Offer(cure), Answer::kTaken);
  EXPECT_EQ(Current(), "1.5:bob");
  // From here on the counter counts again.
  EXPECT_EQ(Offer({.counter = 6, .unix_nanos = 250}), Answer::kTaken);
}

TEST_F(RecordBookTest, ARestartKeepsAllInOrder) {
  Offer({.counter = 1, .author = "bob", .content = std::string(200'000, 'p')});
  Offer({.counter = 2});
  Offer({.kind = 2, .counter = 1});
  Offer({.kind = 2, .counter = 2, .scope = {"a"}});
  Offer({.kind = 3, .subject = "x", .content = std::string("\0\n|", 3)});
  const std::string current = Current();
  const std::string history = History();
  const std::string bytes = book_->current()[1].record->bytes;
  Restart();
  EXPECT_EQ(note_, "");
  EXPECT_EQ(Current(), current);
  EXPECT_EQ(History(), history);
  EXPECT_EQ(book_->current()[1].record->bytes, bytes);
  EXPECT_EQ(book_->history()[0].text, "record 1.1 of bob");
  EXPECT_EQ(book_->history()[0].unix_nanos, 100);
}

TEST_F(RecordBookTest, OnAFullDiskNothingIsTaken) {
  Offer({.counter = 1});
  files_.set_capacity(100);
  const auto answer = book_->Offer(Opened({.counter = 2}));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Current(), "1.1:ann");
  EXPECT_EQ(History(), "");
  files_.set_capacity(-1);
  EXPECT_EQ(Offer({.counter = 2}), Answer::kTaken);
}

TEST_F(RecordBookTest, WhatNeedNotBeOnDiskIsTakenAndWrittenLater) {
  Offer({.counter = 1});
  files_.set_capacity(100);
  const auto answer =
      book_->Offer(Opened({.counter = 2}), RecordBook::Disk::kMay);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, Answer::kTaken);
  EXPECT_EQ(Current(), "1.2:ann");
  EXPECT_EQ(History(), "1.1:ann");
  const auto full = absl::StatusCode::kResourceExhausted;
  EXPECT_EQ(book_->not_on_disk().code(), full);
  book_->SaveAgain();
  EXPECT_EQ(book_->not_on_disk().code(), full);
  Restart();
  EXPECT_EQ(Current(), "1.1:ann");
  EXPECT_TRUE(
      book_->Offer(Opened({.counter = 2}), RecordBook::Disk::kMay).ok());
  files_.set_capacity(-1);
  book_->SaveAgain();
  EXPECT_TRUE(book_->not_on_disk().ok()) << book_->not_on_disk();
  Restart();
  EXPECT_EQ(Current(), "1.2:ann");
  EXPECT_EQ(History(), "1.1:ann");
}

TEST_F(RecordBookTest, WhatWasKeptElsewhereCountsAsItDid) {
  const FakeRecord first{.counter = 1};
  const FakeRecord second{.counter = 2, .unix_nanos = 200, .author = "eve"};
  Offer(first);
  judge_.Shun("eve");
  files_.set_capacity(100);
  // Its author is trusted no more, and the disk is full.
  auto restored = book_->Restore(Opened(second));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, Answer::kTaken);
  EXPECT_EQ(Current(), "1.2:eve");
  EXPECT_FALSE(book_->current()[0].trusted);
  EXPECT_FALSE(book_->not_on_disk().ok());
  EXPECT_EQ(*book_->Restore(Opened(second)), Answer::kUnchanged);
  files_.set_capacity(-1);
  // What was replaced stays so, by its counter or by its author's loss.
  EXPECT_EQ(*book_->Restore(Opened(first)), Answer::kOlder);
  EXPECT_EQ(Offer({.counter = 1, .unix_nanos = 300}), Answer::kTaken);
  EXPECT_EQ(*book_->Restore(Opened(second)), Answer::kOlder);
  const FakeRecord third{.counter = 3, .unix_nanos = 250, .author = "eve"};
  EXPECT_EQ(*book_->Restore(Opened(third)), Answer::kOlder);
  judge_.Pardon("eve");
  EXPECT_EQ(*book_->Restore(Opened(second)), Answer::kOlder);
  EXPECT_EQ(Current(), "1.1:ann");
}

TEST_F(RecordBookTest, WhatIsDamagedIsLeftOutAndSaid) {
  Offer({.counter = 1});
  Offer({.counter = 2});
  Offer({.kind = 2, .counter = 1});
  const std::string whole = *files_.Read(RecordBook::kFile);
  // No flipped bit makes another record.
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    files_.FlipBit(RecordBook::kFile, static_cast<int64_t>(bit));
    Restart();
    ASSERT_NE(note_, "") << bit;
    for (const RecordBook::Held& held : book_->current()) {
      ASSERT_TRUE(held.record->text == "record 1.2 of ann" ||
                  held.record->text == "record 2.1 of ann")
          << bit;
    }
    ASSERT_TRUE(book_->history().empty()) << bit;
    files_.FlipBit(RecordBook::kFile, static_cast<int64_t>(bit));
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    ASSERT_TRUE(files_
                    .WriteAtomically(RecordBook::kFile,
                                     absl::string_view(whole).substr(0, length))
                    .ok());
    Restart();
    ASSERT_NE(note_, "") << length;
  }
  files_.FailWith(absl::InternalError("broken"));
  EXPECT_FALSE(RecordBook(judge_, &files_).Load().ok());
}

TEST_F(RecordBookTest, IsBounded) {
  for (uint64_t counter = 1; counter <= 100; ++counter) {
    Offer({.counter = counter});
    Offer({.kind = 3, .subject = "x", .counter = counter});
  }
  EXPECT_EQ(book_->history().size(), 2 * RecordBook::kMaxHistory);
  EXPECT_EQ(book_->history().front().id.counter, 36U);
  RecordBook memory(judge_, nullptr);
  for (size_t i = 0; i < RecordBook::kMaxCurrent; ++i) {
    ASSERT_TRUE(
        memory.Offer(Opened({.kind = 3, .subject = absl::StrCat(i)})).ok());
  }
  for (const auto disk : {RecordBook::Disk::kMust, RecordBook::Disk::kMay}) {
    const auto answer =
        memory.Offer(Opened({.kind = 3, .subject = "one more"}), disk);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(memory.current().size(), RecordBook::kMaxCurrent);
  EXPECT_TRUE(
      memory.Offer(Opened({.kind = 3, .subject = "0", .counter = 2})).ok());
}

}  // namespace
}  // namespace dfl::runtime
