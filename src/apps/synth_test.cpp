#include "apps/synth.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "gguf/file.h"

namespace godwit::apps {
namespace {

struct Outcome {
  int exit_code = 0;
  std::string errors;
};

Outcome run(const std::string& arguments) {
  CLI::App app("godwit");
  add_synth_command(app);
  Outcome outcome;
  testing::internal::CaptureStderr();
  try {
    app.parse("synth " + arguments, false);
  } catch (const CLI::ParseError& error) {
    outcome.exit_code = error.get_exit_code();
  }
  outcome.errors = testing::internal::GetCapturedStderr();
  return outcome;
}

std::string model_path() {
  return (std::filesystem::path(testing::TempDir()) / fmt::format("synth_{}.gguf", ::getpid()))
      .string();
}

TEST(SynthCommand, WritesAGivenShape) {
  const Outcome outcome =
      run("--dim 128 --layers 1 --heads 4 --kv-heads 2 --ffn 256 --vocab 300 --type q8_0 "
          "--tensor-type ffn_down=q4_0 --tensor-type attn_v=F16 --seed 3 -o " +
          model_path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto file = gguf::File::open(model_path());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(*file->need_uint("llama.attention.key_length"), 32u);
  EXPECT_EQ(file->find_tensor("blk.0.attn_k.weight")->dims, (std::vector<uint64_t>{128, 64}));
  EXPECT_EQ(file->find_tensor("blk.0.attn_k.weight")->type, TensorType::kQ8_0);
  EXPECT_EQ(file->find_tensor("blk.0.attn_v.weight")->type, TensorType::kF16);
  EXPECT_EQ(file->find_tensor("blk.0.ffn_down.weight")->type, TensorType::kQ4_0);
  EXPECT_NE(file->find_tensor("output.weight"), nullptr);
  std::filesystem::remove(model_path());
}

TEST(SynthCommand, GivenSizesOverrideANamedShape) {
  const Outcome outcome = run("--shape tiny --layers 3 --untied -o " + model_path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto file = gguf::File::open(model_path());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(*file->need_uint("llama.block_count"), 3u);
  EXPECT_EQ(*file->need_uint("llama.embedding_length"), 256u);
  EXPECT_NE(file->find_tensor("output.weight"), nullptr);
  std::filesystem::remove(model_path());
}

TEST(SynthCommand, SaysWhatIsWrongAndExitsWithOne) {
  const std::pair<const char*, const char*> cases[] = {
      {"--shape huge", "error: synth: --shape: expected one of tiny, "},
      {"--dim 128", "error: synth: expected --shape NAME"},
      {"--shape tiny --type q9", "error: synth: --type: expected one of F32, "},
      {"--shape tiny --tensor-type output", "expected PATTERN=TYPE, found 'output'"},
      {"--shape tiny --tensor-type output=i8", "--tensor-type: expected one of F32, "},
      {"--shape tiny --arch mamba", "--arch: expected one of gemma, gemma2, "},
      {"--shape smollm2-135m", "rows of 576 weights"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = run(std::string(arguments) + " -o " + model_path());
    EXPECT_EQ(outcome.exit_code, 1) << arguments;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(model_path())) << arguments;
  }
}

TEST(SynthCommand, NamesAFolderItCannotWriteTo) {
  const Outcome outcome = run("--shape tiny -o /nonexistent/model.gguf");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("/nonexistent/model.gguf"), std::string::npos) << outcome.errors;
}

}  // namespace
}  // namespace godwit::apps
