#include "apps/model_options.h"

#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace godwit::apps {
namespace {

namespace fs = std::filesystem;

// A file that exists: engine_settings() looks for it, but does not open it.
class ModelOptionsTest : public ::testing::Test {
 protected:
  ModelOptionsTest() {
    const fs::path model = folder_.path() / "model.gguf";
    std::ofstream(model) << "GGUF";
    options_.model = model.string();
  }
  testing::TemporaryFolder folder_;
  ModelOptions options_;
};

TEST_F(ModelOptionsTest, KvNamesBothTypes) {
  options_.kv_type = "f32";
  const auto settings = engine_settings(options_);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->k_type, TensorType::kF32);
  EXPECT_EQ(settings->v_type, TensorType::kF32);
}

TEST_F(ModelOptionsTest, KeysAndValuesMayDiffer) {
  options_.v_type = "F32";
  const auto settings = engine_settings(options_);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->k_type, TensorType::kF16);
  EXPECT_EQ(settings->v_type, TensorType::kF32);
}

TEST_F(ModelOptionsTest, EveryKvTypeGoesWithEveryOther) {
  for (const char* k : {"f32", "f16", "bf16", "q8_0", "q4_0"}) {
    for (const char* v : {"f32", "f16", "bf16", "q8_0", "q4_0"}) {
      options_.k_type = k;
      options_.v_type = v;
      const auto settings = engine_settings(options_);
      ASSERT_TRUE(settings) << k << " " << v;
      EXPECT_EQ(kv_type_name(settings->k_type), k);
      EXPECT_EQ(kv_type_name(settings->v_type), v);
    }
  }
}

TEST_F(ModelOptionsTest, UnsupportedKvTypesAreErrorsNotSlowPaths) {
  for (const char* type : {"q5_0", "q4_k", "", "f64"}) {
    options_.k_type = type;
    const auto settings = engine_settings(options_);
    ASSERT_FALSE(settings) << type;
    EXPECT_NE(settings.error().message.find("f32, f16, bf16, q8_0 and q4_0 are"),
              std::string::npos);
  }
}

TEST_F(ModelOptionsTest, ReadsTheTemplateFile) {
  const fs::path path = folder_.path() / "t.jinja";
  std::ofstream(path) << "{{ messages }}";
  options_.chat_template_file = path.string();
  EXPECT_EQ(engine_settings(options_)->chat_template, "{{ messages }}");
  options_.chat_template_file += ".missing";
  EXPECT_FALSE(engine_settings(options_));
}

TEST_F(ModelOptionsTest, TemplatesGoByNameOrAreJinja) {
  options_.chat_template = "llama3";
  EXPECT_NE(engine_settings(options_)->chat_template.find("<|eot_id|>"), std::string::npos);
  options_.chat_template = "{{ messages }}";
  EXPECT_EQ(engine_settings(options_)->chat_template, "{{ messages }}");
  options_.chat_template = "llama99";
  const auto refused = engine_settings(options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'llama99'"), std::string::npos);
  EXPECT_NE(refused.error().message.find(" chatml "), std::string::npos);
}

TEST_F(ModelOptionsTest, TemplateVariablesAreAJsonObject) {
  options_.chat_template_kwargs = R"({"enable_thinking": false})";
  EXPECT_EQ(engine_settings(options_)->chat_template_kwargs, options_.chat_template_kwargs);
  for (const char* wrong : {"[]", "3", "{", "{\"a\": 1} x"}) {
    options_.chat_template_kwargs = wrong;
    const auto refused = engine_settings(options_);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_TRUE(refused.error().message.starts_with("--chat-template-kwargs: expected a JSON"));
  }
}

TEST_F(ModelOptionsTest, MissingModelIsAnError) {
  options_.model += ".missing";
  const auto settings = engine_settings(options_);
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find(".missing"), std::string::npos);
}

TEST_F(ModelOptionsTest, TextFilesKeepTheirBytes) {
  const fs::path path = folder_.path() / "text";
  const std::string text("a\0b\xff\r\n", 6);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_text_file(path.string()).value(), text);
}

TEST_F(ModelOptionsTest, DirectoriesAndEndlessFilesAreNotText) {
  EXPECT_FALSE(read_text_file(folder_.path().string()));
  EXPECT_FALSE(read_text_file("/dev/zero"));
}

TEST(KvType, NamesAreAsFlagsSpellThem) {
  for (const char* name : {"f16", "f32"}) {
    EXPECT_EQ(kv_type_name(parse_kv_type(name).value()), name);
  }
}

}  // namespace
}  // namespace godwit::apps
