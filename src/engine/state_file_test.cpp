// Files of saved state that are not what they should be: each is refused in one line, and the
// session stays what it was.
#include "engine/state_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/session.h"
#include "testing/models/tiny_llama.h"
#include "testing/temporary_folder.h"

namespace godwit::engine {
namespace {

using Tokens = std::vector<TokenId>;

constexpr size_t kTokens = 21;
constexpr std::string_view kNote = "{\"messages\": []}";

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() {
    EXPECT_TRUE(testing::write_tiny_llama(folder_.file("tiny.gguf"), {}));
    engine_ = load("tiny.gguf", TensorType::kF16, 64);
    Session session = new_session(*engine_);
    Tokens tokens;
    for (size_t i = 0; i < kTokens; ++i) tokens.push_back({static_cast<int32_t>(7 * i)});
    EXPECT_TRUE(session.set_prompt(tokens, {}));
    EXPECT_TRUE(save_session(session, folder_.file("saved"), kNote));
    owner_ = state_owner(session);
    const std::string text = folder_.read("saved");
    bytes_.resize(text.size());
    std::memcpy(bytes_.data(), text.data(), text.size());
  }

  [[nodiscard]] std::unique_ptr<Engine> load(const char* name, TensorType kv_type,
                                             uint64_t n_context) const {
    EngineSettings settings;
    settings.model = folder_.file(name);
    settings.n_context = n_context;
    settings.k_type = kv_type;
    settings.v_type = kv_type;
    settings.n_threads = 1;
    Result<std::unique_ptr<Engine>> engine = Engine::load(settings, {});
    EXPECT_TRUE(engine) << engine.error().message;
    return *std::move(engine);
  }
  static Session new_session(Engine& engine) {
    Result<Session> session = engine.new_session();
    EXPECT_TRUE(session) << session.error().message;
    return *std::move(session);
  }
  // The error of bytes that must be refused.
  std::string refusal(std::span<const std::byte> bytes) const {
    const Result<StateFile> parsed = StateFile::parse(bytes, owner_);
    EXPECT_FALSE(parsed);
    if (parsed) return "";
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
    return parsed.error().message;
  }
  // The same of the saved file read by another engine.
  std::string refusal_of(Engine& engine) const {
    Session session = new_session(engine);
    const Result<std::string> note = restore_session(session, folder_.file("saved"));
    EXPECT_FALSE(note);
    EXPECT_TRUE(session.tokens().empty());
    return note ? "" : note.error().message;
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  StateOwner owner_;
  std::vector<std::byte> bytes_;
};

TEST_F(StateFileTest, IsWhatTheHeaderFileSays) {
  const Result<StateFile> parsed = StateFile::parse(bytes_, owner_);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->tokens.size(), kTokens);
  EXPECT_EQ(parsed->note, kNote);
  EXPECT_EQ(bytes_.size(), kStateHeaderBytes + kTokens * (4 + owner_.shape.position_bytes) +
                               owner_.shape.fixed_bytes + kNote.size());
  // One layer of two KV heads of 64 dimensions, K and V in F16.
  EXPECT_EQ(owner_.shape.position_bytes, 2u * 2 * 64 * 2);
}

TEST_F(StateFileTest, RefusesAFlippedBitAnywhere) {
  for (size_t at = 0; at < bytes_.size(); at += at < kStateHeaderBytes + 100 ? 1 : 53) {
    std::vector<std::byte> bytes = bytes_;
    bytes[at] ^= std::byte{static_cast<unsigned char>(1u << (at % 8))};
    EXPECT_NE(refusal(bytes), "") << "byte " << at;
  }
  bytes_.back() ^= std::byte{1};
  EXPECT_EQ(refusal(bytes_), fmt::format("damaged: the checksum of the note at byte {} is wrong",
                                         bytes_.size() - kNote.size()));
}

TEST_F(StateFileTest, RefusesAFileCutAnywhereOrTooLong) {
  const size_t tokens = kStateHeaderBytes;
  const size_t positions = tokens + 4 * kTokens;
  const size_t note = bytes_.size() - kNote.size();
  for (const size_t end : {tokens, positions, note, bytes_.size()}) {
    for (const size_t n : {end - 1, end, end + 1}) {
      if (n >= bytes_.size()) continue;
      EXPECT_TRUE(refusal(std::span(bytes_).first(n)).starts_with("cut short")) << n;
    }
  }
  for (size_t n = 0; n < bytes_.size(); n += 97) {
    EXPECT_NE(refusal(std::span(bytes_).first(n)), "");
  }
  bytes_.push_back(std::byte{0});
  EXPECT_TRUE(refusal(bytes_).starts_with("too long: 21 tokens take"));
}

TEST_F(StateFileTest, SaysWhatAForeignFileIs) {
  EXPECT_EQ(refusal({}), "not a saved state: expected 'godwitST' at byte 0");
  EXPECT_EQ(refusal(std::as_bytes(std::span("GGUF and more than eight bytes"))),
            "not a saved state: expected 'godwitST' at byte 0");
  bytes_[8] = std::byte{2};
  EXPECT_EQ(refusal(bytes_), "a saved state of version 2; this program reads version 1");
}

TEST_F(StateFileTest, RefusesTheStateOfAnotherModel) {
  // The same shape, metadata and directory; other weights.
  ASSERT_TRUE(testing::write_tiny_llama(folder_.file("other.gguf"), {.seed = 6}));
  const auto other = load("other.gguf", TensorType::kF16, 64);
  EXPECT_NE(refusal_of(*other).find("saved with another model"), std::string::npos);
  // A copy of the model under another name is the same model.
  std::filesystem::copy(folder_.file("tiny.gguf"), folder_.file("copy.gguf"));
  const auto copy = load("copy.gguf", TensorType::kF16, 64);
  Session session = new_session(*copy);
  EXPECT_TRUE(restore_session(session, folder_.file("saved")));
}

TEST_F(StateFileTest, RefusesOtherKvTypesAndAContextTooShort) {
  const auto f32 = load("tiny.gguf", TensorType::kF32, 64);
  EXPECT_NE(refusal_of(*f32).find("KV types F16 and F16, here they are F32 and F32"),
            std::string::npos);
  const auto shorter = load("tiny.gguf", TensorType::kF16, 16);
  EXPECT_NE(refusal_of(*shorter).find("saved with 21 tokens, the context holds 16 (-c)"),
            std::string::npos);
}

TEST_F(StateFileTest, AFailedRestoreChangesNothing) {
  bytes_[bytes_.size() / 2] ^= std::byte{1};
  folder_.write("damaged", bytes_);
  Session session = new_session(*engine_);
  const Tokens tokens = {{1}, {2}, {3}};
  ASSERT_TRUE(session.set_prompt(tokens, {}));
  const Result<std::string> note = restore_session(session, folder_.file("damaged"));
  ASSERT_FALSE(note);
  EXPECT_TRUE(note.error().message.starts_with(folder_.file("damaged").string() + ": damaged"));
  EXPECT_TRUE(std::ranges::equal(session.tokens(), tokens));
}

TEST_F(StateFileTest, SavesAnEmptyTimelineToo) {
  Session session = new_session(*engine_);
  ASSERT_TRUE(save_session(session, folder_.file("empty"), ""));
  const Result<std::string> note = restore_session(session, folder_.file("empty"));
  ASSERT_TRUE(note) << note.error().message;
  EXPECT_TRUE(session.tokens().empty());
}

}  // namespace
}  // namespace godwit::engine
