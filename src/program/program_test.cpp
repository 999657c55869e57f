// Validation and traffic on a one-layer program written by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "program/access.h"
#include "program/builder.h"
#include "program/print.h"
#include "program/traffic.h"
#include "program/validate.h"

namespace godwit::program {
namespace {

constexpr uint64_t kDim = 64;
constexpr uint64_t kFfn = 96;
constexpr uint64_t kVocab = 100;

// One layer, 4 query heads and 2 KV heads of 16; every matrix Q8_0, the head tied to the embedding.
Program one_layer() {
  ProgramBuilder b;
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return b.weight(name, TensorType::kQ8_0, rows, cols);
  };
  const auto vector = [&](const char* name, uint64_t cols) {
    return b.weight(name, TensorType::kF32, 1, cols);
  };
  b.program().n_vocab = kVocab;
  const BufferId x = b.buffer("x", kDim);
  const BufferId q = b.buffer("q", 64);
  const BufferId k = b.buffer("k", 32);
  const BufferId v = b.buffer("v", 32);
  const BufferId attended = b.buffer("attended", 64);
  const BufferId hidden = b.buffer("hidden", kFfn);
  const BufferId logits = b.buffer("logits", kVocab);
  const RopeRef rope = b.rope({.n_rot = 16, .frequencies = std::vector<double>(8, 1.0)});
  b.step("embed", Embed{.table = matrix("embedding", kVocab, kDim), .out = x});
  b.step("qkv",
         NormProject{
             .in = x,
             .norm = RmsNorm{.weight = vector("norm", kDim), .epsilon = 1e-5f},
             .projections = {{.weight = matrix("wq", 64, kDim), .bias = vector("bq", 64), .out = q},
                             {.weight = matrix("wk", 32, kDim), .bias = {}, .out = k},
                             {.weight = matrix("wv", 32, kDim), .bias = {}, .out = v}}});
  b.step("attend", Attend{.q = q,
                          .k = k,
                          .v = v,
                          .out = attended,
                          .kv = b.kv(2, 16),
                          .rope = rope,
                          .pairs = RopePairs::kHalves,
                          .n_heads = 4,
                          .n_kv_heads = 2,
                          .head_dim = 16,
                          .scale = 0.25f});
  b.step("attn_out",
         ProjectAdd{.in = attended, .weight = matrix("wo", kDim, 64), .bias = {}, .target = x});
  b.step("gated_up", GatedUp{.in = x,
                             .norm = RmsNorm{.weight = vector("norm2", kDim), .epsilon = 1e-5f},
                             .gate = matrix("gate", kFfn, kDim),
                             .up = matrix("up", kFfn, kDim),
                             .out = hidden});
  b.step("down",
         ProjectAdd{.in = hidden, .weight = matrix("down", kDim, kFfn), .bias = {}, .target = x});
  b.step("output", Output{.in = x,
                          .norm = {.weight = vector("norm3", kDim), .epsilon = 1e-5f},
                          .weight = matrix("embedding", kVocab, kDim),
                          .logits = logits});
  b.program().logits = logits;
  return std::move(b).finish();
}

template <class Kind>
Kind& operation(Program& program) {
  for (Step& step : program.main) {
    if (auto* found = std::get_if<Kind>(&step.operation)) return *found;
  }
  throw std::logic_error("no such step");
}

std::string error_of(const Program& program) {
  const Status status = validate(program);
  return status ? "valid" : status.error().message;
}

TEST(Validate, AcceptsAWholeProgram) { EXPECT_EQ(error_of(one_layer()), "valid"); }

TEST(Validate, NamesTheStepThatReadsTooEarly) {
  Program p = one_layer();
  std::swap(p.main[1], p.main[2]);
  EXPECT_EQ(error_of(p), "program: step 'attend': reads buffer 'q' before any step has written it");
}

TEST(Validate, RefusesWeightsThatDoNotFitTheirInput) {
  Program p = one_layer();
  operation<GatedUp>(p).gate = operation<ProjectAdd>(p).weight;
  EXPECT_NE(error_of(p).find("step 'gated_up': gate has 64 rows, up 96"), std::string::npos)
      << error_of(p);
}

TEST(Validate, RefusesABufferOfAnotherWidth) {
  Program p = one_layer();
  operation<Attend>(p).v = operation<Attend>(p).q;
  EXPECT_EQ(error_of(p), "program: step 'attend': buffer 'q' holds 64 floats, the step expects 32");
}

TEST(Validate, RefusesAWeightThatDiffersFromItsTable) {
  Program p = one_layer();
  operation<ProjectAdd>(p).weight.type = TensorType::kF16;
  EXPECT_EQ(
      error_of(p),
      "program: step 'attn_out': weight 'wo' is [64, 64] Q8_0, the step expects [64, 64] F16");
}

TEST(Validate, RefusesTwoStepsOverOneKv) {
  Program p = one_layer();
  p.main.insert(p.main.begin() + 3, p.main[2]);
  EXPECT_EQ(error_of(p), "program: step 'attend': KV 0 already belongs to another step");
}

TEST(Validate, RefusesHeadsThatCannotShare) {
  Program p = one_layer();
  p.kvs[0].n_kv_heads = 1;
  EXPECT_NE(error_of(p).find("KV holds 1 heads of 16"), std::string::npos) << error_of(p);
}

TEST(Validate, RefusesMoreRopeThanAHeadHas) {
  Program p = one_layer();
  p.ropes[0].n_rot = 32;
  EXPECT_NE(error_of(p).find("RoPE turns 32 dimensions"), std::string::npos) << error_of(p);
}

TEST(Validate, RefusesAProgramWithoutLogits) {
  Program p = one_layer();
  p.main.pop_back();
  EXPECT_EQ(error_of(p), "program: no step writes the logits");
}

TEST(Validate, RefusesABiasOfTheWrongLength) {
  Program p = one_layer();
  operation<NormProject>(p).projections[1].bias = operation<NormProject>(p).projections[0].bias;
  EXPECT_NE(error_of(p).find("'bq' is [1, 64], expected [1, 32]"), std::string::npos)
      << error_of(p);
}

// What predicts one token further, without a layer of its own.
Program with_mtp() {
  Program p = one_layer();
  const BufferId x = operation<Embed>(p).out;
  const Output output = operation<Output>(p);
  p.buffers.push_back({"mtp_hidden", kDim});
  p.buffers.push_back({"mtp_pair", 2 * kDim});
  p.mtp_hidden = {static_cast<uint32_t>(p.buffers.size() - 2)};
  const BufferId pair{p.mtp_hidden.value + 1};
  p.mtp.push_back({"mtp.hidden", Norm{.parts = {{x, output.norm}}, .out = p.mtp_hidden}});
  p.mtp.push_back(
      {"mtp.pair", Norm{.parts = {{x, output.norm}, {p.mtp_hidden, output.norm}}, .out = pair}});
  p.mtp.push_back({"mtp.output", output});
  return p;
}

TEST(Validate, AcceptsAHeadThatPredictsFurther) { EXPECT_EQ(error_of(with_mtp()), "valid"); }

TEST(Validate, RefusesAHeadThatDoesNotBeginWithHiddenStates) {
  Program p = with_mtp();
  p.mtp.erase(p.mtp.begin());
  EXPECT_EQ(error_of(p),
            "program: step 'mtp.pair': reads buffer 'mtp_hidden' before any step has written it");
  p = with_mtp();
  p.mtp_hidden = p.logits;
  EXPECT_EQ(error_of(p), "program: the mtp list does not begin with its hidden states");
}

TEST(Validate, RefusesAHeadThatPredictsNothing) {
  Program p = with_mtp();
  p.mtp.pop_back();
  EXPECT_EQ(error_of(p), "program: the mtp list does not end with the logits");
}

TEST(Validate, RefusesNormsThatDoNotFillTheirBuffer) {
  Program p = with_mtp();
  std::get<Norm>(p.mtp[1].operation).parts.pop_back();
  EXPECT_EQ(error_of(p),
            "program: step 'mtp.pair': buffer 'mtp_pair' holds 128 floats, the step expects 64");
}

// What a mistake in one operand of a program makes of it.
template <class Kind>
struct WrongOperand {
  void (*plant)(Program&, Kind&);
  const char* error;
};

template <class Kind, size_t n>
void expect_refusals(const Program& good, const WrongOperand<Kind> (&cases)[n]) {
  EXPECT_EQ(error_of(good), "valid");
  for (const WrongOperand<Kind>& wrong : cases) {
    Program p = good;
    wrong.plant(p, operation<Kind>(p));
    EXPECT_NE(error_of(p).find(wrong.error), std::string::npos) << error_of(p);
  }
}

// Another vector in the table, so that only the step's own check can refuse it.
WeightRef vector_of(Program& p, uint64_t cols) {
  p.weights.push_back({"another", TensorType::kF32, 1, cols});
  return {static_cast<uint32_t>(p.weights.size() - 1), TensorType::kF32, 1, cols};
}

TEST(Validate, RefusesSinksThatAreNotOnePerHead) {
  Program good = one_layer();
  operation<Attend>(good).sinks = vector_of(good, 4);
  expect_refusals<Attend>(good, {{[](Program& p, Attend& s) { s.sinks = vector_of(p, 2); },
                                  "'another' is [1, 2], expected [1, 4]"}});
}

// 8 experts of 24, 2 of them a token's, and a shared one of 40.
Program with_experts() {
  ProgramBuilder b;
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return b.weight(name, TensorType::kF32, rows, cols);
  };
  const BufferId x = b.buffer("x", kDim);
  const Routing routing{.buffer = b.buffer("routing", 5), .n_used = 2, .shared = true};
  const BufferId hidden = b.buffer("hidden", 2 * 24 + 40);
  const RmsNorm norm{.weight = matrix("norm", 1, kDim), .epsilon = 1e-5f};
  b.program().n_vocab = kVocab;
  b.program().logits = b.buffer("logits", kVocab);
  b.step("embed", Embed{.table = matrix("embedding", kVocab, kDim), .out = x});
  b.step("route", Route{.in = x,
                        .norm = norm,
                        .weight = matrix("router", 8, kDim),
                        .bias = matrix("router_bias", 1, 8),
                        .shared = matrix("router_shared", 1, kDim),
                        .out = routing});
  b.step("up", ExpertGatedUp{.in = x,
                             .norm = norm,
                             .routing = routing,
                             .gate = {.weight = matrix("gate", 8 * 24, kDim),
                                      .n_experts = 8,
                                      .bias = matrix("gate_bias", 1, 8 * 24)},
                             .up = {.weight = matrix("up", 8 * 24, kDim), .n_experts = 8},
                             .shared_gate = matrix("shared_gate", 40, kDim),
                             .shared_up = matrix("shared_up", 40, kDim),
                             .out = hidden});
  b.step("down", ExpertDownAdd{.in = hidden,
                               .routing = routing,
                               .down = {.weight = matrix("down", 8 * kDim, 24), .n_experts = 8},
                               .shared_down = matrix("shared_down", kDim, 40),
                               .target = x});
  b.step("output", Output{.in = x,
                          .norm = norm,
                          .weight = matrix("embedding", kVocab, kDim),
                          .logits = b.program().logits});
  return std::move(b).finish();
}

TEST(Validate, RefusesRoutersThatDoNotFitTheirExperts) {
  expect_refusals<Route>(
      with_experts(),
      {{[](Program& p, Route& s) { s.bias = vector_of(p, 9); }, "is [1, 9], expected [1, 8]"},
       {[](Program& p, Route& s) { s.shared = vector_of(p, 8); }, "is [1, 8], expected [1, 64]"},
       {[](Program&, Route& s) { s.shared.reset(); }, "the shared expert lacks a weight"},
       {[](Program& p, Route& s) { s.norm.weight = vector_of(p, 24); }, "expected [1, 64]"},
       {[](Program& p, Route& s) {
          s.out.n_used = 9;
          p.buffers[s.out.buffer.value].width = s.out.width();
        },
        "chooses 9 of 8 experts"}});
}

TEST(Validate, RefusesExpertsOfOtherShapes) {
  expect_refusals<ExpertGatedUp>(
      with_experts(),
      {{[](Program&, ExpertGatedUp& s) { s.gate.n_experts = 0; }, "there are no experts"},
       {[](Program& p, ExpertGatedUp& s) { s.up.weight = operation<Route>(p).weight; },
        "'router' is [8, 64], expected 8 experts of [24, 64]"},
       {[](Program& p, ExpertGatedUp& s) {
          s.gate.n_experts = 4;
          s.up.n_experts = 4;
          p.buffers[s.out.value].width = 2 * 48 + 40;
        },
        "has 4 experts, its router chooses among 8"},
       {[](Program& p, ExpertGatedUp& s) { s.gate.bias = vector_of(p, 24); },
        "is [1, 24], expected [1, 192]"},
       {[](Program&, ExpertGatedUp& s) { s.shared_up.reset(); }, "lacks a matrix"},
       {[](Program& p, ExpertGatedUp& s) { s.shared_up = operation<Route>(p).weight; },
        "'router' is [8, 64], expected [40, 64]"}});
  expect_refusals<ExpertDownAdd>(
      with_experts(),
      {{[](Program&, ExpertDownAdd& s) { s.down.n_experts = 0; }, "there are no experts"},
       {[](Program& p, ExpertDownAdd& s) { s.down.bias = vector_of(p, kDim); },
        "is [1, 64], expected [1, 512]"},
       {[](Program& p, ExpertDownAdd& s) { s.shared_down = vector_of(p, 40); },
        "is [1, 40], expected [64, 40]"}});
}

// 4 heads of 8 over 2 key heads, 4 taps.
Program with_recurrence() {
  ProgramBuilder b;
  const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
    return b.weight(name, TensorType::kF32, rows, cols);
  };
  constexpr uint32_t kChannels = (2 * 2 + 4) * 8;
  const BufferId x = b.buffer("x", kDim);
  const BufferId qkv = b.buffer("qkv", kChannels);
  const BufferId z = b.buffer("z", 32);
  const BufferId beta = b.buffer("b", 4);
  const BufferId alpha = b.buffer("a", 4);
  const BufferId mixed = b.buffer("mixed", 32);
  b.program().n_vocab = kVocab;
  b.program().logits = b.buffer("logits", kVocab);
  b.step("embed", Embed{.table = matrix("embedding", kVocab, kDim), .out = x});
  b.step("qkvz",
         NormProject{.in = x,
                     .norm = RmsNorm{.weight = matrix("norm", 1, kDim), .epsilon = 1e-5f},
                     .projections = {{.weight = matrix("wqkv", kChannels, kDim), .out = qkv},
                                     {.weight = matrix("wz", 32, kDim), .out = z},
                                     {.weight = matrix("wb", 4, kDim), .out = beta},
                                     {.weight = matrix("wa", 4, kDim), .out = alpha}}});
  b.step(
      "delta",
      Recurrent{.qkv = qkv,
                .z = z,
                .b = beta,
                .a = alpha,
                .out = mixed,
                .state = b.state({.channels = kChannels, .taps = 4, .n_heads = 4, .head_dim = 8}),
                .layout = Recurrent::Layout::kSplit,
                .pairing = Recurrent::Pairing::kModulo,
                .conv = matrix("conv", kChannels, 4),
                .dt_bias = matrix("dt_bias", 1, 4),
                .decay = matrix("decay", 1, 4),
                .norm = {.weight = matrix("head_norm", 1, 8), .epsilon = 1e-6f},
                .n_heads = 4,
                .n_key_heads = 2,
                .head_dim = 8});
  b.step("add", ProjectAdd{.in = mixed, .weight = matrix("wo", kDim, 32), .target = x});
  b.step("output", Output{.in = x,
                          .norm = {.weight = matrix("norm", 1, kDim), .epsilon = 1e-5f},
                          .weight = matrix("embedding", kVocab, kDim),
                          .logits = b.program().logits});
  return std::move(b).finish();
}

TEST(Validate, RefusesRecurrentLayersThatDoNotFitTheirState) {
  expect_refusals<Recurrent>(
      with_recurrence(),
      {{[](Program&, Recurrent& s) { s.state.value = 1; }, "state 1 does not exist"},
       {[](Program& p, Recurrent&) { p.states[0].channels = 56; }, "state of 56 channels"},
       {[](Program& p, Recurrent&) { p.states[0].taps = 3; }, "expected [64, 3] F32"},
       {[](Program& p, Recurrent&) { p.states[0].head_dim = 4; }, "heads of 4 does not fit"},
       {[](Program& p, Recurrent& s) { s.decay = vector_of(p, 2); }, "expected [1, 4]"},
       {[](Program& p, Recurrent& s) { s.dt_bias = vector_of(p, 8); }, "expected [1, 4]"},
       {[](Program& p, Recurrent& s) { s.norm.weight = vector_of(p, 32); }, "expected [1, 8]"},
       {[](Program&, Recurrent& s) { s.z.reset(); }, "z belongs in a buffer of its own"}});
}

// Counted by hand: rows * cols * 34/32 bytes of Q8_0, 4 bytes per norm or bias value.
TEST(Traffic, CountsEveryWeightOnceAndOneEmbeddingRowPerToken) {
  const Program p = one_layer();
  const uint64_t matrices = (64 + 32 + 32 + 64 + 96 + 96) * 64 + 64 * 96 + 100 * 64;
  const uint64_t vectors = 3 * 64 + 64;
  TrafficInput input{.position = 10, .n_rows = 3};
  const Traffic t = traffic_of(p, input);
  EXPECT_EQ(t.weight_bytes, matrices * 34 / 32 + vectors * 4 + 3 * 64 * 34 / 32);
  EXPECT_EQ(t.kv_read_bytes, 10u * 2 * 2 * 16 * 2);
  EXPECT_EQ(t.kv_write_bytes, 3u * 2 * 2 * 16 * 2);
  input.k_type = TensorType::kF32;
  EXPECT_EQ(traffic_of(p, input).kv_read_bytes, 10u * 2 * 16 * (4 + 2));
  EXPECT_EQ(kv_bytes_per_position(p, TensorType::kF16, TensorType::kF16), 128u);
}

// A floor has no write of a recurrent state: traffic.cpp says why.
TEST(Traffic, ReadsARecurrentStateOncePerCall) {
  Recurrent r;
  r.n_heads = 4;
  r.n_key_heads = 2;
  r.head_dim = 8;
  for (const uint64_t n_rows : {1u, 5u}) {
    const Traffic t = traffic_of(Operation(r), {.position = 7, .n_rows = n_rows});
    EXPECT_EQ(t.kv_read_bytes, 4u * 8 * 8 * 4);
    EXPECT_EQ(t.kv_write_bytes, 0u);
  }
}

TEST(Print, HasALinePerStepWithItsWeights) {
  const Program p = one_layer();
  const std::string text = print(p, {.position = 0});
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), p.main.size());
  EXPECT_NE(text.find("x[64] -> q[64] k[32] v[32]  norm [1, 64] F32  wq [64, 64] Q8_0"),
            std::string::npos)
      << text;
}

TEST(Builder, SharesAWeightThatIsAskedForTwice) {
  const Program p = one_layer();
  const auto named = std::count_if(p.weights.begin(), p.weights.end(),
                                   [](const Weight& w) { return w.name == "embedding"; });
  EXPECT_EQ(named, 1);
}

}  // namespace
}  // namespace godwit::program
