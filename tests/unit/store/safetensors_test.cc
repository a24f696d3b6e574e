#include "daemon/store/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/cpu_seconds.h"

namespace dfl::store {
namespace {

using testing::HasSubstr;

ports::ModelInfo Model() {
  ports::ModelInfo model;
  model.kind = "cnn";
  model.parameters = {
      {"fc.weight", {2, 3}, 0, 6}, {"fc.bias", {2}, 6, 2}, {"scale", {}, 8, 1}};
  model.buffers = {{"bn.mean", {2}, 0, 2}};
  model.parameter_count = 9;
  model.buffer_count = 2;
  return model;
}

const std::vector<float> kParameters = {1, 2, 3, 4, 5, 6, -0.0f, 8e-40f, 9.5f};
const std::vector<float> kBuffers = {0.25f, -0.5f};

SafetensorsSource Source(const ports::ModelInfo& model = Model()) {
  absl::StatusOr<SafetensorsSource> source = SafetensorsSource::Create(
      model, kParameters, kBuffers, {{"step", "100"}});
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

std::string WholeFile(const SafetensorsSource& source) {
  std::string bytes(source.size(), '\0');
  EXPECT_EQ(source.Read(0, absl::MakeSpan(bytes.data(), bytes.size())),
            bytes.size());
  return bytes;
}

struct Taken {
  absl::Status status;
  std::vector<float> parameters = std::vector<float>(9, 77);
  std::vector<float> buffers = std::vector<float>(2, 77);
  SafetensorsMetadata metadata;
  std::vector<std::string> notes;
};

Taken Take(const std::string& bytes, size_t piece = 1 << 20,
           const ImportOptions& options = {},
           const ports::ModelInfo& model = Model()) {
  Taken taken;
  SafetensorsReader reader(model, absl::MakeSpan(taken.parameters),
                           absl::MakeSpan(taken.buffers), options);
  for (size_t at = 0; at < bytes.size() && taken.status.ok(); at += piece) {
    taken.status = reader.Feed(absl::string_view(bytes).substr(at, piece));
  }
  if (taken.status.ok()) taken.status = reader.Finish();
  taken.metadata = reader.metadata();
  taken.notes = reader.plan().notes;
  return taken;
}

// A file with `header` and as many bytes of data as the model has.
std::string FileOf(const std::string& header, size_t data_bytes = 44) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

constexpr char kHeader[] =
    R"({"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},)"
    R"("scale":{"dtype":"F32","shape":[],"data_offsets":[32,36]},)"
    R"("bn.mean":{"dtype":"F32","shape":[2],"data_offsets":[36,44]}})";

TEST(SafetensorsSource, WritesTheFormatThatOtherProgramsRead) {
  const std::string bytes = WholeFile(Source());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + length + 44);
  const nlohmann::json header =
      nlohmann::json::parse(bytes.substr(8, static_cast<size_t>(length)));
  EXPECT_EQ(header["__metadata__"]["format"], "pt");
  EXPECT_EQ(header["__metadata__"]["step"], "100");
  EXPECT_EQ(header["fc.weight"]["dtype"], "F32");
  EXPECT_EQ(header["fc.weight"]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(header["fc.bias"]["data_offsets"], nlohmann::json({24, 32}));
  EXPECT_EQ(header["scale"]["shape"], nlohmann::json::array());
  EXPECT_EQ(header["bn.mean"]["data_offsets"], nlohmann::json({36, 44}));
  float value = 0;
  std::memcpy(&value, bytes.data() + 8 + length + 36, 4);
  EXPECT_EQ(value, 0.25f);
}

TEST(SafetensorsSource, AnyPieceIsThatPartOfTheWhole) {
  const SafetensorsSource source = Source();
  const std::string whole = WholeFile(source);
  for (size_t offset = 0; offset <= whole.size() + 2; ++offset) {
    for (const size_t count : {0, 1, 3, 8, 50, 1000}) {
      std::string piece(count, '?');
      const size_t got =
          source.Read(offset, absl::MakeSpan(piece.data(), piece.size()));
      const std::string expected =
          offset < whole.size() ? whole.substr(offset, count) : "";
      EXPECT_EQ(piece.substr(0, got), expected) << offset << " + " << count;
    }
  }
}

TEST(SafetensorsSource, RefusesAModelThatDoesNotFitItsVectors) {
  const std::vector<float> few = {1};
  EXPECT_FALSE(SafetensorsSource::Create(Model(), few, kBuffers, {}).ok());
  ports::ModelInfo model = Model();
  model.parameters[1].offset = 5;  // overlaps
  EXPECT_FALSE(
      SafetensorsSource::Create(model, kParameters, kBuffers, {}).ok());
  model = Model();
  model.buffers[0].name = "fc.bias";  // comes twice
  EXPECT_FALSE(
      SafetensorsSource::Create(model, kParameters, kBuffers, {}).ok());
  model = Model();
  model.buffers[0].name = "\xff";
  EXPECT_FALSE(
      SafetensorsSource::Create(model, kParameters, kBuffers, {}).ok());
}

TEST(SafetensorsReader, BringsBackEveryBitInPiecesOfAnySize) {
  const std::string bytes = WholeFile(Source());
  for (const size_t piece :
       {size_t{1}, size_t{3}, size_t{7}, size_t{64}, size_t{1} << 20}) {
    const Taken taken = Take(bytes, piece);
    ASSERT_TRUE(taken.status.ok()) << taken.status;
    EXPECT_EQ(std::memcmp(taken.parameters.data(), kParameters.data(), 36), 0);
    EXPECT_EQ(std::memcmp(taken.buffers.data(), kBuffers.data(), 8), 0);
    EXPECT_EQ(taken.metadata.at("step"), "100");
  }
}

TEST(SafetensorsReader, TakesTensorsInAnyOrder) {
  std::string bytes = FileOf(
      R"({"bn.mean":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("scale":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"
      R"("fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[20,44]},)"
      R"("fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}}  )");
  const float first = 3;
  std::memcpy(bytes.data() + bytes.size() - 44, &first, 4);
  const Taken taken = Take(bytes, 5);
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_EQ(taken.buffers[0], 3);
  EXPECT_EQ(taken.parameters[0], 0);
}

TEST(SafetensorsReader, EveryTruncationIsAnError) {
  const std::string bytes = WholeFile(Source());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::Status status = Take(bytes.substr(0, size), 16).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the file ends"));
  }
}

TEST(SafetensorsReader, AnyFlippedBitOfTheHeaderIsHarmless) {
  const std::string bytes = WholeFile(Source());
  for (size_t bit = 0; bit < 8 * (bytes.size() - 44); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const Taken taken = Take(flipped, 32);
    if (!taken.status.ok()) continue;
    // What passes differs in the metadata at most.
    EXPECT_EQ(std::memcmp(taken.parameters.data(), kParameters.data(), 36), 0)
        << "bit " << bit;
  }
}

TEST(SafetensorsReader, RefusesWithTheReason) {
  struct Case {
    std::vector<std::pair<std::string, std::string>> replace;
    std::string why;
  };
  const Case cases[] = {
      {{{"fc.bias", "fc.bais"}},
       "tensors are missing: \"fc.bias\"; the file has \"fc.bais\", which the "
       "model does not; did you mean \"fc.bais\" by \"fc.bias\"?"},
      {{{R"("scale":{"dtype":"F32","shape":[],"data_offsets":[32,36]},)", ""}},
       "leave a gap"},
      {{{"\"scale\"", "\"fc.bias\""}}, "\"fc.bias\" comes twice"},
      {{{"[2,3]", "[3,2]"}},
       "\"fc.weight\": shape [3, 2], where the model's is [2, 3]"},
      {{{"[2,3]", "[6]"}}, "\"fc.weight\": shape [6]"},
      {{{"[2,3]", "[2,-3]"}}, "its shape is missing or no list"},
      {{{"[2,3]", "[2,3.0]"}}, "its shape is missing or no list"},
      {{{"[2,3]", "[2,99999999999999999999]"}}, "its shape is missing or no"},
      {{{"\"dtype\":\"F32\",\"shape\":[2,3]", "\"shape\":[2,3]"}},
       "\"fc.weight\": dtype missing or no text; allowed: F64, F32"},
      {{{"F32", "C64"}}, "dtype \"C64\" is unknown; allowed: F64, F32"},
      {{{"F32", "I32"}},
       "\"fc.weight\": dtype \"I32\" cannot become float32, which the model "
       "has here; allowed: F32, and F16, BF16, F64"},
      {{{"[24,32]", "[20,28]"}}, "overlap another tensor's"},
      {{{"[24,32]", "[24,31]"}}, "do not span its shape [2] of F32"},
      {{{"[24,32]", "[32,24]"}}, "do not span its shape [2] of F32"},
      {{{"[2,3]", "[4611686018427387904,4]"}}, "do not span its shape"},
      {{{"[24,32]", "[0,8]"}}, "overlap"},
      {{{"[36,44]", "[40,48]"}}, "leave a gap before them"},
      {{{"[36,44]", "[18446744073709551608,0]"}}, "data_offsets are not two"},
      {{{"[36,44]", "[9223372036854775800,9223372036854775807]"}},
       "do not span"},
      {{{"[24,32]", "[24]"}}, "data_offsets are not two integers"},
      {{{"[24,32]", "\"x\""}}, "data_offsets are not two integers"},
      {{{"\"dtype\"", "\"dtyp\""}}, "unknown field \"dtyp\""},
      {{{R"({"dtype":"F32","shape":[],"data_offsets":[32,36]})", "5"}},
       "\"scale\": its entry is no JSON object"},
      {{{R"("scale")", R"("__metadata__":{"a":1},"scale")"}},
       "__metadata__: \"a\" is no text"},
      {{{R"("scale")", R"("__metadata__":[],"scale")"}},
       "__metadata__ is no JSON object"},
      {{{"[2,3]", "[[[[[2]]]]]"}}, "its shape is missing or no list"},
      {{{"[2,3]", "{\"a\":{}}"}}, "its shape is missing or no list"},
      {{{"[24,32]", "[24,[32]]"}}, "data_offsets are not two integers"},
      {{{"[24,32]", "[24,32,33]"}}, "data_offsets are not two integers"},
      {{{R"("shape":[2,3])", R"("shape":[2,3],"shape":[2,3])"}},
       "\"shape\" comes twice in the header"},
      {{{R"("scale")", R"("__metadata__":{"a":"1","a":"2"},"scale")"}},
       "\"a\" comes twice in the header"},
      {{{R"("scale")", R"("__metadata__":{"a":{"b":"1"}},"scale")"}},
       "__metadata__: \"a\" is no text"},
      {{{"}}", "}"}}, "no JSON"},
      {{{"}}", "}}x"}}, "no JSON"},
  };
  for (const Case& c : cases) {
    std::string header = kHeader;
    for (const auto& [from, to] : c.replace) {
      ASSERT_THAT(header, HasSubstr(from));
      header = absl::StrReplaceAll(header, {{from, to}});
    }
    const absl::Status status = Take(FileOf(header)).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << header;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why)) << header;
  }
  EXPECT_TRUE(Take(FileOf(kHeader)).status.ok());
}

TEST(SafetensorsReader, RefusesAHeaderOfAnotherKind) {
  for (const std::string header :
       {"[]", "{}", "null", "\"\"", "5 ", "\0\0\0"}) {
    EXPECT_FALSE(Take(FileOf(header)).status.ok()) << header;
  }
}

// "a0":ENTRY,"a1":ENTRY,... in the braces of an object.
std::string ObjectOf(size_t count, const std::string& entry) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\"a", i, "\":", entry);
  }
  return text + "}";
}

TEST(SafetensorsHeader, HasABoundForEverythingOfWhichThereMayBeMany) {
  const std::string empty =
      R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  const auto why = [](const std::string& text) {
    return std::string(ParseSafetensorsHeader(text).status().message());
  };
  const auto most = ParseSafetensorsHeader(ObjectOf(kMaxFileTensors, empty));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->tensors.size(), kMaxFileTensors);
  EXPECT_THAT(why(ObjectOf(kMaxFileTensors + 1, empty)),
              HasSubstr("more than 65536 entries"));
  const auto metadata = [](size_t count) {
    return absl::StrCat("{\"__metadata__\":", ObjectOf(count, "\"\""), "}");
  };
  EXPECT_EQ(why(metadata(kMaxMetadataEntries)), "");
  EXPECT_THAT(why(metadata(kMaxMetadataEntries + 1)),
              HasSubstr("__metadata__ has more than 4096 entries"));
  const auto dimensions = [](size_t count) {
    std::string shape = "0";
    for (size_t i = 1; i < count; ++i) shape += ",0";
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", shape,
                        R"(],"data_offsets":[0,0]}})");
  };
  EXPECT_EQ(why(dimensions(kMaxFileDimensions)), "");
  EXPECT_THAT(why(dimensions(kMaxFileDimensions + 1)),
              HasSubstr("\"a\": its shape has more than 64 dimensions"));
}

// A parser that keeps what it reads takes a gigabyte for these.
TEST(SafetensorsHeader, RefusesDeepNestingWhereItBegins) {
  constexpr size_t kBytes = size_t{8} << 20;
  std::string objects;
  while (objects.size() < kBytes) objects += "{\"a\":";
  const std::pair<std::string, std::string> cases[] = {
      {std::string(kBytes, '['), "the header is no JSON object"},
      {objects, "\"a\": unknown field \"a\""},
      {"{\"a\":" + std::string(kBytes, '['), "its entry is no JSON object"},
      {"{\"a\":{\"shape\":" + std::string(kBytes, '['),
       "its shape is missing or no list"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(std::string(ParseSafetensorsHeader(text).status().message()),
                HasSubstr(why));
  }
}

TEST(SafetensorsHeader, QuotesLittleOfWhatIsNoJson) {
  for (const std::string& text :
       {"{\"a\":\"" + std::string(100000, 'x'),
        "{\"" + std::string(100000, '\x01'), std::string(100000, '\xff')}) {
    const absl::Status status = ParseSafetensorsHeader(text).status();
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 500u);
  }
}

TEST(SafetensorsReader, RefusesALongHeaderBeforeItIsRead) {
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1}, (uint64_t{16} << 20) + 4 * 1024 + 1,
        std::numeric_limits<uint64_t>::max()}) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    const absl::Status status = Take(bytes).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("the header's length is ", length,
                                       "; allowed: 2 to 16781312")));
  }
}

TEST(SafetensorsReader, RefusesBytesBehindTheEndAndValuesThatAreNotFinite) {
  EXPECT_THAT(std::string(Take(FileOf(kHeader, 45)).status.message()),
              HasSubstr("there are bytes behind the 44"));
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::string bytes = FileOf(kHeader);
    std::memcpy(bytes.data() + bytes.size() - 44 + 8, &bad, 4);
    EXPECT_THAT(std::string(Take(bytes, 3).status.message()),
                HasSubstr("\"fc.weight\": value 2 is not finite"));
  }
}

TEST(SafetensorsReader, KeepsItsFirstError) {
  std::vector<float> parameters(9);
  std::vector<float> buffers(2);
  SafetensorsReader reader(Model(), absl::MakeSpan(parameters),
                           absl::MakeSpan(buffers));
  const absl::Status first = reader.Feed(std::string(8, '\0'));
  EXPECT_FALSE(first.ok());
  EXPECT_EQ(reader.Feed("more"), first);
  EXPECT_EQ(reader.Finish(), first);
}

// ---------------------------------------------- files of other programs ----

// A file of these tensors, one after the other.
std::string FileWith(const std::vector<RawTensor>& tensors,
                     const nlohmann::json& metadata = nullptr) {
  nlohmann::ordered_json header;
  std::string data;
  if (!metadata.is_null()) header["__metadata__"] = metadata;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data.append(tensor.bytes.data(), tensor.bytes.size());
  }
  const std::string file = FileOf(header.dump(), 0);
  return file + data;
}

template <typename T>
absl::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// The model's tensors, all 0.
std::vector<RawTensor> Plain(const std::string& prefix = "") {
  static const std::string kZeros(24, '\0');
  const absl::string_view bytes = kZeros;
  return {{prefix + "fc.weight", "F32", {2, 3}, bytes},
          {prefix + "fc.bias", "F32", {2}, bytes.substr(0, 8)},
          {prefix + "scale", "F32", {}, bytes.substr(0, 4)},
          {prefix + "bn.mean", "F32", {2}, bytes.substr(0, 8)}};
}

TEST(SafetensorsImport, NarrowValuesAreWidenedExactly) {
  // 1, -2, the least and the greatest half, a subnormal, -0.
  const std::vector<uint16_t> halves = {0x3C00, 0xC000, 0x0001,
                                        0x7BFF, 0x03FF, 0x8000};
  const std::vector<uint16_t> bfloats = {0x3F80, 0x0001};  // 1, 2^-133
  const std::vector<double> doubles = {0.5};
  std::vector<RawTensor> tensors = Plain();
  tensors[0] = {"fc.weight", "F16", {2, 3}, BytesOf(halves)};
  tensors[1] = {"fc.bias", "BF16", {2}, BytesOf(bfloats)};
  tensors[2] = {"scale", "F64", {}, BytesOf(doubles)};
  const std::string file = FileWith(tensors);
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1} << 20}) {
    const Taken taken = Take(file, piece);
    ASSERT_TRUE(taken.status.ok()) << taken.status;
    const std::vector<float> expected = {
        1,     -2, std::ldexp(1.0F, -24),  65504, 1023 * std::ldexp(1.0F, -24),
        -0.0F, 1,  std::ldexp(1.0F, -133), 0.5F};
    EXPECT_EQ(std::memcmp(taken.parameters.data(), expected.data(), 36), 0);
    EXPECT_THAT(taken.notes,
                testing::ElementsAre(
                    HasSubstr("1 tensor is BF16"), HasSubstr("1 tensor is F16"),
                    HasSubstr("1 tensor is F64 and converted to float32")));
  }
}

TEST(SafetensorsImport, WhatFloat32CannotHoldIsToldOrRefused) {
  std::vector<RawTensor> tensors = Plain();
  std::vector<double> value = {0.1};
  tensors[2] = {"scale", "F64", {}, BytesOf(value)};
  const Taken rounded = Take(FileWith(tensors));
  ASSERT_TRUE(rounded.status.ok()) << rounded.status;
  EXPECT_EQ(rounded.parameters[8], 0.1F);
  EXPECT_THAT(rounded.notes,
              testing::Contains(HasSubstr("1 value of F64 was rounded")));
  value[0] = 1e300;
  EXPECT_THAT(std::string(Take(FileWith(tensors)).status.message()),
              HasSubstr("\"scale\": value 0 is not finite as float32"));
  const std::vector<uint16_t> infinite = {0x7C00};
  tensors[2] = {"scale", "F16", {}, BytesOf(infinite)};
  EXPECT_FALSE(Take(FileWith(tensors)).status.ok());
}

TEST(SafetensorsImport, WhatIsNotTrainedIsSkippedAndTold) {
  const std::vector<int64_t> counter = {7};
  const std::string frozen(40, 'x');
  std::vector<RawTensor> tensors = Plain();
  tensors.insert(tensors.begin(),
                 {"bn.num_batches_tracked", "I64", {}, BytesOf(counter)});
  tensors.insert(tensors.begin() + 3, {"backbone.weight", "F32", {10}, frozen});
  const Taken taken = Take(FileWith(tensors), 5);
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_EQ(taken.parameters, std::vector<float>(9, 0));
  EXPECT_THAT(taken.notes,
              testing::ElementsAre(HasSubstr(
                  "\"bn.num_batches_tracked\" (I64), \"backbone.weight\" "
                  "(F32)")));
}

TEST(SafetensorsImport, APrefixIsFoundAndStripped) {
  const std::string file = FileWith(Plain("module."));
  EXPECT_THAT(std::string(Take(file).status.message()),
              HasSubstr("did you mean --strip-prefix module.?"));
  ImportOptions options;
  options.strip_prefix = "module.";
  EXPECT_TRUE(Take(file, 7, options).status.ok());
}

TEST(SafetensorsImport, AHintIsFoundQuicklyAmongManyTensors) {
  ports::ModelInfo model;
  SafetensorsHeader header;
  for (size_t i = 0; i < kMaxFileTensors; ++i) {
    const std::string name = absl::StrCat("block.", i, ".weight");
    model.parameters.push_back({name, {0}, 0, 0});
    FileTensor tensor;
    tensor.name = absl::StrCat("module.", name);
    tensor.dtype = "F32";
    tensor.shape = {0};
    header.tensors.push_back(tensor);
  }
  // To look through all names for each of them takes ten seconds.
  constexpr double kSeconds = 3;
  const double begin = CpuSeconds();
  EXPECT_THAT(std::string(PlanImport(model, header, {}).status().message()),
              HasSubstr("did you mean --strip-prefix module.?"));
  for (FileTensor& tensor : header.tensors) tensor.name[0] = 'M';
  header.tensors.back().name = "missing";
  EXPECT_THAT(std::string(PlanImport(model, header, {}).status().message()),
              HasSubstr("and 65531 more; the file has "));
  EXPECT_LT(CpuSeconds() - begin, kSeconds);
}

TEST(SafetensorsImport, AnotherHeadIsNamedAndCanBeLeftOut) {
  const std::vector<float> wide(12, 3);
  std::vector<RawTensor> tensors = Plain();
  tensors[0] = {"fc.weight", "F32", {4, 3}, BytesOf(wide)};
  tensors[1] = {"fc.bias", "F32", {4}, BytesOf(wide).substr(0, 16)};
  const std::string file = FileWith(tensors);
  EXPECT_THAT(std::string(Take(file).status.message()),
              testing::AllOf(
                  HasSubstr("\"fc.weight\": shape [4, 3], where the model's is "
                            "[2, 3], \"fc.bias\": shape [4], where the model's "
                            "is [2]"),
                  HasSubstr("--only 'PATTERN'")));
  ImportOptions options;
  options.only = {"bn.*", "sc?le"};
  const Taken taken = Take(file, 3, options);
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_EQ(taken.parameters[8], 0);
  EXPECT_EQ(taken.parameters[0], 77);  // not touched
  EXPECT_EQ(taken.buffers, std::vector<float>(2, 0));
  EXPECT_THAT(taken.notes,
              testing::Contains(HasSubstr(
                  "keeps the node's values: \"fc.weight\", \"fc.bias\"")));
  options.only = {"nothing*"};
  EXPECT_THAT(std::string(Take(file, 3, options).status.message()),
              HasSubstr("--only nothing*: no tensor of the model"));
}

TEST(SafetensorsImport, WhatIsMissingKeepsItsValuesOnlyWhenAsked) {
  std::vector<RawTensor> tensors = Plain();
  tensors.erase(tensors.begin() + 2);
  const std::string file = FileWith(tensors);
  EXPECT_THAT(std::string(Take(file).status.message()),
              testing::AllOf(HasSubstr("tensors are missing: \"scale\""),
                             HasSubstr("--init-missing")));
  ImportOptions options;
  options.init_missing = true;
  const Taken taken = Take(file, 64, options);
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_EQ(taken.parameters[8], 77);
  // A file that has nothing of the model is another model's.
  EXPECT_FALSE(Take(FileWith(Plain("x")), 64, options).status.ok());
}

TEST(SafetensorsImport, ATiedTensorIsTakenUnderAnyOfItsNames) {
  ports::ModelInfo model = Model();
  model.aliases = {{"head.bias", "fc.bias"}};
  std::vector<RawTensor> tensors = Plain();
  tensors[1].name = "head.bias";
  const Taken taken = Take(FileWith(tensors), 64, {}, model);
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_EQ(taken.parameters[6], 0);
  EXPECT_THAT(taken.notes, testing::ElementsAre(HasSubstr(
                               "\"head.bias\" is taken for \"fc.bias\"")));
  // Our own files have both.
  const Taken both = Take(WholeFile(Source(model)), 3, {}, model);
  ASSERT_TRUE(both.status.ok()) << both.status;
  EXPECT_EQ(both.parameters[6], kParameters[6]);
}

TEST(SafetensorsImport, TheMetadataIsLookedAtBeforeAnyValue) {
  std::vector<float> parameters(9);
  std::vector<float> buffers(2);
  SafetensorsReader reader(Model(), absl::MakeSpan(parameters),
                           absl::MakeSpan(buffers));
  reader.CheckMetadata([](const SafetensorsMetadata& metadata) {
    EXPECT_EQ(metadata.at("step"), "100");
    return absl::FailedPreconditionError("of another run");
  });
  EXPECT_EQ(reader.Feed(WholeFile(Source())).message(), "of another run");
  EXPECT_EQ(parameters, std::vector<float>(9));
}

TEST(SafetensorsSource, OtherTensorsStandBesideTheTrainedOnes) {
  const std::vector<int64_t> counter = {1, -2};
  const std::string flags("\1\0\1", 3);
  auto source = SafetensorsSource::Create(
      Model(), kParameters, kBuffers, {},
      {{"flags", "BOOL", {3}, flags}, {"steps", "I64", {2}, BytesOf(counter)}});
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string bytes = WholeFile(*source);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header =
      nlohmann::json::parse(bytes.substr(8, static_cast<size_t>(length)));
  EXPECT_EQ(header["steps"]["data_offsets"], nlohmann::json({0, 16}));
  EXPECT_EQ(header["flags"]["data_offsets"], nlohmann::json({60, 63}));
  EXPECT_EQ(bytes.substr(bytes.size() - 3), std::string("\1\0\1", 3));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string piece(2, '?');
    const size_t got = source->Read(at, absl::MakeSpan(piece.data(), 2));
    EXPECT_EQ(piece.substr(0, got), bytes.substr(at, 2)) << at;
  }
}

TEST(MatchesPattern, KnowsStarsAndQuestionMarks) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("a*b*c", "axxbyybzc"));
  EXPECT_TRUE(MatchesPattern("layer?.*", "layer1.0.weight"));
  EXPECT_FALSE(MatchesPattern("layer?.*", "layer10.weight"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("a", ""));
  EXPECT_TRUE(MatchesPattern("*.weight", "a.weight.weight"));
}

}  // namespace
}  // namespace dfl::store
