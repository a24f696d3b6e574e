// What nodes send each other.
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/base/sha256.h"
#include "daemon/codec/coded_steps.h"
#include "daemon/codec/coordinate_set.h"
#include "daemon/codec/encoder.h"
#include "daemon/codec/mod_body.h"
#include "daemon/codec/small_integers.h"
#include "daemon/codec/step_code.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/records/record_content.h"
#include "daemon/records/sign_record.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/tls/authority.h"
#include "dfl/control/v1/control.pb.h"
#include "dfl/record/v1/record.pb.h"
#include "tests/contract/sample_frames.h"
#include "tests/fuzz/corpus_writer.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

namespace pb = ::dfl::peer::v1;

const absl::Time kNow = absl::FromUnixSeconds(1'790'000'000);

std::string Byte(int value) { return {static_cast<char>(value)}; }

std::string Control(const ports::Frame& frame) {
  pb::ControlFrame message;
  exchange::ToProto(frame, &message);
  return message.SerializeAsString();
}

// One of each kind, with all fields set.
void PutFrames(const CorpusWriter& corpus) {
  std::string before;
  for (const ports::Frame& frame : ports::contract::SampleFrames()) {
    const std::string name = ports::FrameName(frame);
    if (name == before) continue;
    before = name;
    if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      pb::Chunk message;
      exchange::ToProto(*chunk, &message);
      corpus.Put("frames", name, Byte(1) + message.SerializeAsString());
    } else {
      corpus.Put("frames", name, Byte(0) + Control(frame));
    }
  }
  ports::PeerIdentity self{NodeId("beta"), 5, "beta:7400"};
  corpus.Put("frames", "hello",
             Byte(2) + exchange::MakeHello(self, 77).SerializeAsString());
  corpus.Put("frames", "empty", "");
  // A field whose length is far beyond the end.
  corpus.Put("frames", "long-field",
             std::string("\0\x0a\xff\xff\xff\xff\x07\x0a", 8));
}

struct Form {
  const char* name;
  core::Coordinates coordinates;
  core::ValueType values;
};

constexpr Form kForms[] = {
    {"dense-fp32", core::Coordinates::kDense, core::ValueType::kFp32},
    {"dense-int8", core::Coordinates::kDense, core::ValueType::kInt8},
    {"random-fp16", core::Coordinates::kRandom, core::ValueType::kFp16},
    {"topk-bf16", core::Coordinates::kTopK, core::ValueType::kBf16},
};

// Header and body of a model of n parameters and two buffer entries.
std::string Message(const Form& form, int64_t n) {
  std::vector<float> values;
  for (int64_t l = 0; l < n; ++l) {
    values.push_back(static_cast<float>(l * 7 % 11) - 4.5F);
  }
  const std::vector<float> buffers = {0.25F, -2};
  codec::EncoderInput input;
  input.format.coordinates = form.coordinates;
  input.format.values = form.values;
  input.sent = n / 4;
  input.seed = 5;
  input.values = values;
  input.buffers = buffers;
  const auto encoder = codec::Encoder::Create(input);
  DFL_CHECK(encoder.ok());
  const std::string header = (*encoder)->header_bytes();
  return header + (*encoder)->Next(1 << 20);
}

std::string Steps(int bits, int vectors, int64_t n) {
  core::StepCodes codes(bits, vectors, n);
  std::vector<float> target;
  for (int64_t l = 0; l < n; ++l) target.push_back(static_cast<float>(l % 5));
  const std::vector<float> base(static_cast<size_t>(n));
  for (int q = 0; q < vectors; ++q) {
    core::CodeSteps(q, target, base, 0.5F, codes);
  }
  return codec::EncodeSteps(codes);
}

std::string Number(int64_t value) {
  return Byte(static_cast<int>(value % 256)) +
         Byte(static_cast<int>(value / 256));
}

std::string Integers(int form, int64_t count, int spread) {
  std::vector<int16_t> values;
  for (int64_t l = 0; l < count + (form % 2 == 0 ? 0 : 40'000); ++l) {
    values.push_back(static_cast<int16_t>(
        (l * 7919 % 101) % spread - spread / 2 + (l % 97 == 0 ? 900 : 0)));
  }
  return Byte(form) + Number(count) +
         codec::EncodeSmallIntegers(values, codec::Centre::kZero);
}

// An offer of n values with the modulus M, and the answer to it. The seed is 5.
struct Exchanged {
  core::ModOffer offer;
  core::ModAnswer answer;
};

Exchanged MakeExchange(int modulus, int64_t n) {
  std::vector<float> x;
  std::vector<float> own;
  for (int64_t l = 0; l < n; ++l) {
    x.push_back(0.1F * static_cast<float>(l % 13) - 0.5F);
    own.push_back(x.back() + 0.01F * static_cast<float>(l % 7 - 3));
  }
  core::ModSpec spec;
  spec.modulus = modulus;
  std::vector<core::BlockScale> scales(
      static_cast<size_t>(core::ModBlocks(spec, n)), {150, 0});
  if (scales.size() > 1) scales[1].e = 0;
  Exchanged exchanged;
  exchanged.offer = core::WriteMod(spec, x, scales, 5);
  exchanged.offer.number = 3;
  exchanged.answer =
      core::ReadMod(exchanged.offer, own, absl::MakeSpan(scales));
  exchanged.answer.gamma = 0.5;
  exchanged.answer.beta = 0.25;
  return exchanged;
}

void PutMod(const CorpusWriter& corpus) {
  for (const int modulus : {6, 8, 256}) {
    const Exchanged exchanged = MakeExchange(modulus, 600);
    const std::string head =
        Byte(modulus - core::kLeastModulus) + Number(599) + Number(5);
    corpus.Put("mod_body", absl::StrCat("offer-mod-", modulus),
               Byte(0) + head + codec::EncodeOffer(exchanged.offer));
    corpus.Put("mod_body", absl::StrCat("answer-mod-", modulus),
               Byte(1) + head + codec::EncodeAnswer(exchanged.answer));
  }
  const std::string head = Byte(4) + Number(599) + Number(5);
  std::string body = codec::EncodeOffer(MakeExchange(8, 600).offer);
  corpus.Put("mod_body", "offer-cut", Byte(0) + head + body.substr(0, 100));
  body.replace(0, 8, 8, '\xff');
  corpus.Put("mod_body", "window-is-no-number", Byte(0) + head + body);

  corpus.Put("small_integers", "few", Integers(0, 500, 5));
  corpus.Put("small_integers", "two-segments", Integers(1, 30'000, 9));
  std::string bad = Integers(0, 500, 5);
  bad[3] = '\x3f';
  corpus.Put("small_integers", "no-such-table", bad);
  corpus.Put("small_integers", "ends-early", Integers(0, 500, 5).substr(0, 60));
}

void PutCodec(const CorpusWriter& corpus) {
  PutMod(corpus);
  for (const Form& form : kForms) {
    corpus.Put("codec_message", form.name, Byte(4) + Message(form, 300));
  }
  const std::string good = Message(kForms[0], 20);
  corpus.Put("codec_message", "cut", Byte(1) + good.substr(0, 60));
  // n and the payload are as large as the fields take.
  std::string large = Byte(1) + good.substr(0, 36);
  for (const size_t at : {5, 9, 25}) large.replace(at, 4, "\xff\xff\xff\xff");
  corpus.Put("codec_message", "large", large);

  corpus.Put("step_code", "3-bits-2-vectors",
             Byte(2 + 16) + Byte(43) + Byte(1) + Steps(3, 2, 300));
  corpus.Put("step_code", "16-bits",
             Byte(15) + Byte(9) + Byte(0) + Steps(16, 1, 10));
  corpus.Put("step_code", "zero-steps", Byte(0) + Byte(99) + Byte(0));
  corpus.Put("step_code", "all-ones", std::string(300, '\xff'));

  const std::vector<float> values = {1, 0, 5, 0, 0, 7, 0, 9, 2, 0};
  const auto set = codec::CoordinateSet::LargestDifferences(values, {}, 4);
  corpus.Put("coordinates", "4-of-10",
             std::string("\x09\0\x03\0", 4) + set.EncodeIndices());
  const auto random = codec::CoordinateSet::Random(65536, 100, 3);
  corpus.Put("coordinates", "100-of-65536",
             std::string("\xff\xff\x63\0", 4) + random.EncodeIndices());
  corpus.Put("coordinates", "zeros", std::string(60, '\0'));
  corpus.Put("coordinates", "all", std::string("\x07\0\x07\0\xff", 5));
}

std::string OrderPart(int order, absl::string_view bytes) {
  return AsPart(absl::StrCat(Byte(order), bytes));
}

std::string Unsigned(records::RecordKind kind, const std::string& subject,
                     const std::string& content) {
  const auto record =
      records::MakeUnsignedRecord(kind, subject, 3, content, "", "ann", kNow);
  DFL_CHECK(record.ok());
  return *record;
}

ports::RecordId IdOf(const std::string& bytes) {
  const auto record = records::UnsignedRecordCodec("").Open(bytes);
  DFL_CHECK(record.ok());
  return record->id;
}

// Offers a record, and gives it in one part.
std::string RecordOrders(const std::string& record) {
  const ports::RecordId id = IdOf(record);
  const auto size = static_cast<int64_t>(record.size());
  return OrderPart(0, Control(ports::RecordSummary{{id}})) +
         OrderPart(0, Control(ports::RecordPart{id, size, 0, record}));
}

// A model that is pushed: kind, numbers, step, no scalars, header and body.
std::string PushOrder(int kind) {
  return OrderPart(
      5, absl::StrCat(Byte(kind), Byte(9), Byte(0), Byte(1),
                      std::string("\x05\0\x01\0", 4), Message(kForms[0], 20)));
}

// An algorithm by its place in the catalogue, and what is said to it.
void PutSessions(const CorpusWriter& corpus) {
  const std::string state = OrderPart(4, "");
  const std::string pause = OrderPart(3, std::string("\x64\0", 2));
  const std::string record = Unsigned(records::RecordKind::kPlan, "", "a: b\n");
  std::string frames;
  for (const ports::Frame& frame : ports::contract::SampleFrames()) {
    if (std::holds_alternative<ports::Chunk>(frame)) continue;
    const std::string bytes = Control(frame);
    if (bytes.size() < 400) frames += OrderPart(0, bytes);
  }
  corpus.Put("peer_session", "all-frames", Byte(0) + state + frames + pause);
  corpus.Put("peer_session", "record", Byte(1) + RecordOrders(record) + pause);
  const ports::AskFrame ask{5, ports::AskPurpose::kMix, 3};
  int place = 0;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    corpus.Put("peer_session", absl::StrCat("models-", info.name),
               Byte(place++) + state + PushOrder(1) + PushOrder(2) +
                   OrderPart(0, Control(ask)) + pause + PushOrder(0) + pause);
  }
}

ports::MembersFrame News(ports::MemberState state, uint64_t refutations,
                         bool with_facts) {
  ports::MemberUpdate update;
  update.node = NodeId("box-1");
  update.incarnation = {2, refutations};
  update.state = state;
  if (with_facts) {
    ports::MemberFacts facts;
    facts.addresses = {"box-1:7600"};
    facts.memory = 9;
    update.facts = facts;
  }
  return {{update}};
}

void PutMembers(const CorpusWriter& corpus) {
  using ports::MemberState;
  const auto told = [](const ports::MembersFrame& news) {
    return Byte(1) + AsPart(Control(news));
  };
  corpus.Put("members", "alive", told(News(MemberState::kAlive, 0, true)));
  corpus.Put("members", "dies-and-is-back",
             told(News(MemberState::kAlive, 0, true)) +
                 told(News(MemberState::kSuspect, 0, false)) +
                 told(News(MemberState::kDead, 0, false)) +
                 told(News(MemberState::kAlive, 1, true)));
  corpus.Put("members", "leaves",
             told(News(MemberState::kAlive, 0, true)) +
                 told(News(MemberState::kLeft, 0, false)));
  ports::MembersFrame large = News(MemberState::kAlive, 0, true);
  large.members[0].incarnation.starts = std::numeric_limits<uint64_t>::max();
  corpus.Put("members", "many-starts", told(large));
}

void PutRecords(const CorpusWriter& corpus) {
  using records::RecordKind;
  const std::string phase = records::ToContent(records::PhaseOrder{
      runtime::DesiredPhase::kPaused, {"box-1"}, "run-1", {"site=north"}});
  const std::string ban =
      records::ToContent(records::BanOrder{true, "it was stolen"});
  const std::string drain =
      records::ToContent(records::DrainOrder{true, "new disk"});
  const std::string labels = records::ToContent(
      records::LabelsOrder{{{"line", "2"}, {"site", "north"}}});
  corpus.Put("record_content", "phase", Byte(1) + phase);
  corpus.Put("record_content", "ban", Byte(2) + ban);
  corpus.Put("record_content", "drain", Byte(3) + drain);
  corpus.Put("record_content", "labels", Byte(4) + labels);
  corpus.Put("record_content", "label-text", Byte(0) + "site=north");
  corpus.Put("record_content", "cut", Byte(1) + phase.substr(0, 5));

  const std::string plan =
      Unsigned(RecordKind::kPlan, "", "algorithm: {name: pame}\n");
  corpus.Put("record", "plan", plan);
  corpus.Put("record", "phase", Unsigned(RecordKind::kPhase, "", phase));
  corpus.Put("record", "labels",
             Unsigned(RecordKind::kLabels, "box-1", labels));
  corpus.Put("record", "cut", plan.substr(0, 70));
  corpus.Put("record", "empty", "");
  corpus.Put("record", "zeros", std::string(64, '\0'));
}

// Of a person of the cluster that record_fuzz.cc knows.
void PutSignedRecord(const CorpusWriter& corpus) {
  const tls::Validity validity{kNow, absl::Hours(24)};
  const auto authority = tls::Authority::Make("plant", validity);
  DFL_CHECK(authority.ok());
  const tls::PrivateKey key = tls::PrivateKey::Generate();
  const tls::Identity ann{"plant", tls::Role::kAdmin, "ann"};
  const auto leaf = authority->Issue(key, ann, validity);
  DFL_CHECK(leaf.ok());
  const tls::Credentials author{
      ann, {authority->certificate()}, {*leaf}, key, "", "", ""};
  const auto record = records::SignRecord(
      records::RecordKind::kBan, "spiffe://plant/node/box-1", 1,
      records::ToContent(records::BanOrder{true, "stolen"}), author, kNow);
  DFL_CHECK(record.ok());
  corpus.Put("record", "signed-ban", *record);
}

void PutStatus(const CorpusWriter& corpus) {
  dfl::control::v1::MemberReport report;
  report.set_age_seconds(0.5);
  dfl::control::v1::DaemonStatus& status = *report.mutable_status();
  status.mutable_node()->set_node("box-1");
  corpus.Put("member_status", "least", report.SerializeAsString());
  for (const char* name : {"box-2", "two\nlines\x1b[2J"}) {
    status.mutable_node()->add_peers()->set_node(name);
  }
  status.mutable_node()->set_step(std::numeric_limits<int64_t>::min());
  corpus.Put("member_status", "peers", report.SerializeAsString());
  corpus.Put("member_status", "empty", "");
  corpus.Put("member_status", "cut", report.SerializeAsString().substr(0, 12));
}

}  // namespace

void PutMessages(const CorpusWriter& corpus) {
  PutFrames(corpus);
  PutCodec(corpus);
  PutSessions(corpus);
  PutMembers(corpus);
  PutRecords(corpus);
  PutSignedRecord(corpus);
  PutStatus(corpus);
}

}  // namespace dfl::fuzz
