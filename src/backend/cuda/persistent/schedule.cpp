#include "backend/cuda/persistent/schedule.h"

#include <algorithm>

#include "base/bits.h"

namespace godwit::cuda::persistent {
namespace {

using program::Attend;
using program::BufferId;
using program::Embed;
using program::GatedUp;
using program::NormProject;
using program::Output;
using program::Program;
using program::ProjectAdd;
using program::Step;
using program::WeightRef;

constexpr size_t kStepsPerLayer = 5;
constexpr uint32_t kMaxPlaces = 64;  // blocks with partial sums at a time

bool is_half(TensorType type) { return type == TensorType::kF16 || type == TensorType::kBF16; }

uint32_t narrow(uint64_t n) { return static_cast<uint32_t>(n); }

// The residual has two places, written in turn: who adds to one reads the other meanwhile.
struct Buffers {
  EdgeShape x[2];
  EdgeShape qkv;
  EdgeShape attended;
  EdgeShape hidden;
  EdgeShape partials;
};

class Scheduler {
 public:
  Scheduler(const Program& program, const Geometry& geometry)
      : program_(program), geometry_(geometry) {}

  Result<Schedule> run() {
    const std::vector<Step>& steps = program_.main;
    if (steps.size() < 2 || (steps.size() - 2) % kStepsPerLayer != 0) {
      return fail("{} steps are no sequence of dense layers", steps.size());
    }
    n_layers_ = narrow((steps.size() - 2) / kStepsPerLayer);
    if (n_layers_ == 0) return fail("a program without layers");
    if (steps.size() - 1 > kThreads) return fail("{} layers, too many", n_layers_);
    if (Status s = embed(steps.front()); !s) return fail(s.error());
    if (Status s = place_buffers(steps); !s) return fail(s.error());
    for (uint32_t layer = 0; layer < n_layers_; ++layer) {
      const Step* const of = &steps[1 + layer * kStepsPerLayer];
      for (size_t i = 0; i < kStepsPerLayer; ++i) {
        if (Status s = step(of[i], layer, i); !s)
          return fail(std::move(s).error().with(of[i].label));
      }
    }
    if (Status s = output(steps.back()); !s) {
      return fail(std::move(s).error().with(steps.back().label));
    }
    if (Status s = divide_shared_memory(); !s) return fail(s.error());
    keep_in_l2();
    return std::move(schedule_);
  }

 private:
  Status embed(const Step& step) {
    const auto* e = std::get_if<Embed>(&step.operation);
    if (e == nullptr) return fail("{}: expected the embedding first", step.label);
    x_ = e->out;
    dim_ = narrow(e->table.cols);
    schedule_.embed = {.table = e->table, .scale = e->scale, .out = {}};
    return {};
  }

  Status place_buffers(const std::vector<Step>& steps) {
    const auto* attend = std::get_if<Attend>(&steps[2].operation);
    const auto* gated = std::get_if<GatedUp>(&steps[4].operation);
    if (attend == nullptr || gated == nullptr) {
      return fail("{}: expected projections, attention, projection, gated feed-forward",
                  steps[1].label);
    }
    attend_ = attend;
    // A small model gets fewer CTAs: who owns nothing would only ask.
    geometry_.n_ctas = std::min(geometry_.n_ctas, narrow(div_up(gated->gate.rows, kSlotRows / 2)));
    schedule_.n_ctas = geometry_.n_ctas;
    const uint32_t n_kv = attend->n_kv_heads;
    if (attend->head_dim != 64 && attend->head_dim != 128) {
      return fail("{}: heads of {} dimensions; 64 or 128 run here", steps[2].label,
                  attend->head_dim);
    }
    if (n_kv > geometry_.n_ctas || attend->n_heads / n_kv > kMaxGroup) {
      return fail("{}: {} KV heads of {} query heads each; at most {} of {} run here",
                  steps[2].label, n_kv, attend->n_heads / n_kv, geometry_.n_ctas, kMaxGroup);
    }
    schedule_.head_dim = attend->head_dim;
    pieces_ = std::min(geometry_.n_ctas / n_kv, kMaxPieces);
    Shape heads;
    heads.group = attend->n_heads / n_kv;
    heads.head_dim = attend->head_dim;
    const uint32_t q_width = attend->n_heads * attend->head_dim;
    const uint32_t kv_width = n_kv * attend->head_dim;
    buffers_.x[0] = place(dim_, n_layers_ + 1);
    buffers_.x[1] = place(dim_, n_layers_);
    buffers_.qkv = place(q_width + 2 * kv_width, n_layers_);
    buffers_.attended = place(q_width, n_layers_);
    buffers_.hidden = place(narrow(gated->gate.rows), n_layers_);
    buffers_.partials = place(n_kv * pieces_ * partial_words(heads), n_layers_);
    schedule_.embed.out = buffers_.x[0];
    return {};
  }

  EdgeShape place(uint32_t words, uint32_t versions_per_token) {
    const EdgeShape edge{.offset = schedule_.n_words, .step = versions_per_token % 4};
    // Whole stages are asked for, so the last may reach beyond the words there are.
    schedule_.n_words += narrow(round_up(words, 128));
    return edge;
  }

  Status step(const Step& step, uint32_t layer, size_t place_in_layer) {
    const auto* project = std::get_if<NormProject>(&step.operation);
    const auto* attend = std::get_if<Attend>(&step.operation);
    const auto* add = std::get_if<ProjectAdd>(&step.operation);
    const auto* gated = std::get_if<GatedUp>(&step.operation);
    if (place_in_layer == 0 && project != nullptr) return qkv(step, *project, layer);
    if (place_in_layer == 1 && attend != nullptr) return attention(step, *attend, layer);
    if (place_in_layer == 2 && add != nullptr) return attention_out(step, *add, layer);
    if (place_in_layer == 3 && gated != nullptr) return gated_up(step, *gated, layer);
    if (place_in_layer == 4 && add != nullptr) return down(step, *add, layer);
    return fail("a {} is not expected here", kind_name(step.operation));
  }

  Status qkv(const Step& step, const NormProject& s, uint32_t layer) {
    if (s.in != x_ || s.projections.size() != 3) return fail("expected q, k and v of the residual");
    q_ = s.projections[0].out;
    k_ = s.projections[1].out;
    v_ = s.projections[2].out;
    PhasePlan plan = named(step, layer, layer, 0);
    for (const program::Projection& p : s.projections) {
      plan.matrices.push_back(p.weight);
      plan.biases.push_back(p.bias);
    }
    Shape shape{.finish = Finish::kStore, .in = buffers_.x[0], .out = buffers_.qkv, .extra = {}};
    if (s.norm) {
      plan.norm = s.norm->weight;
      shape.epsilon = s.norm->epsilon;
    }
    plan.out = q_;
    return matvec(std::move(plan), shape);
  }

  Status attention(const Step& step, const Attend& s, uint32_t layer) {
    const bool same = s.n_heads == attend_->n_heads && s.n_kv_heads == attend_->n_kv_heads &&
                      s.head_dim == attend_->head_dim;
    if (!same || s.q != q_ || s.k != k_ || s.v != v_) return fail("layers differ in their heads");
    if (s.gated || s.q_scale || s.softcap != 0.0f || s.window != 0) {
      return fail("gates, query scales, soft caps and windows do not run here");
    }
    const program::Rope& rope = program_.ropes[s.rope.value];
    if (rope.n_rot != 0 && rope.n_rot != s.head_dim) {
      return fail("RoPE turns {} of {} dimensions; all or none run here", rope.n_rot, s.head_dim);
    }
    for (const auto* norm : {&s.q_norm, &s.k_norm}) {
      if (*norm && (*norm)->weight.cols != s.head_dim) {
        return fail("a norm over all heads of a row does not run here");
      }
    }
    PhasePlan plan = named(step, layer, layer, layer);
    Shape shape{.kind = PhaseKind::kAttend,
                .n_heads = s.n_heads,
                .n_kv_heads = s.n_kv_heads,
                .group = s.n_heads / s.n_kv_heads,
                .head_dim = s.head_dim,
                .pieces = pieces_,
                .rope_halves = s.pairs == program::RopePairs::kHalves ? 1u : 0u,
                .in = buffers_.qkv,
                .out = buffers_.attended,
                .extra = buffers_.partials,
                .scale = s.scale};
    if (s.q_norm) {
      plan.norm = s.q_norm->weight;
      shape.epsilon = s.q_norm->epsilon;
    }
    if (s.k_norm) {
      plan.k_norm = s.k_norm->weight;
      shape.k_epsilon = s.k_norm->epsilon;
    }
    plan.kv = s.kv;
    if (rope.n_rot != 0) plan.rope = s.rope;
    plan.out = s.out;
    attended_ = s.out;
    add_phase(std::move(plan), shape);
    return {};
  }

  Status attention_out(const Step& step, const ProjectAdd& s, uint32_t layer) {
    if (s.in != attended_) return fail("expected a projection of what attention leaves");
    Shape shape{.in = buffers_.attended, .out = buffers_.x[1], .extra = buffers_.x[0]};
    return project_add(named(step, layer, layer, layer), s, shape);
  }

  Status gated_up(const Step& step, const GatedUp& s, uint32_t layer) {
    if (s.in != x_) return fail("expected the feed-forward of the residual");
    if (s.gate_bias || s.up_bias) return fail("a feed-forward with biases does not run here");
    PhasePlan plan = named(step, layer, layer, 0);
    plan.matrices = {s.gate, s.up};
    Shape shape{.finish = Finish::kGate,
                .gelu = s.activation == program::Activation::kGelu ? 1u : 0u,
                .in = buffers_.x[1],
                .out = buffers_.hidden,
                .extra = {}};
    if (s.norm) {
      plan.norm = s.norm->weight;
      shape.epsilon = s.norm->epsilon;
    }
    plan.out = s.out;
    hidden_ = s.out;
    return matvec(std::move(plan), shape);
  }

  Status down(const Step& step, const ProjectAdd& s, uint32_t layer) {
    if (s.in != hidden_) return fail("expected a projection of the feed-forward");
    Shape shape{.in = buffers_.hidden, .out = buffers_.x[0], .extra = buffers_.x[1]};
    return project_add(named(step, layer, layer + 1, layer), s, shape);
  }

  Status project_add(PhasePlan plan, const ProjectAdd& s, Shape shape) {
    if (s.target != x_) return fail("expected to add to the residual");
    if (s.norm) return fail("a norm of what is added does not run here");
    shape.finish = Finish::kAdd;
    shape.scale = s.scale;
    plan.matrices = {s.weight};
    plan.biases = {s.bias};
    plan.out = s.target;
    return matvec(std::move(plan), shape);
  }

  Status output(const Step& step) {
    const auto* s = std::get_if<Output>(&step.operation);
    if (s == nullptr || s->in != x_) return fail("expected the logits of the residual");
    if (s->bias) return fail("logits with a bias do not run here");
    PhasePlan plan = named(step, n_layers_, 0, 0);
    plan.matrices = {s->weight};
    plan.norm = s->norm.weight;
    plan.out = s->logits;
    const Shape shape{.finish = Finish::kLogits,
                      .in = buffers_.x[0],
                      .out = {},
                      .extra = {},
                      .epsilon = s->norm.epsilon,
                      .scale = s->scale,
                      .softcap = s->softcap};
    return matvec(std::move(plan), shape);
  }

  // The version that a phase reads, writes and adds to, counted in a token from 0.
  static PhasePlan named(const Step& step, uint32_t in, uint32_t out, uint32_t extra) {
    PhasePlan plan;
    plan.label = step.label;
    plan.phase.in_tag = static_cast<uint8_t>(in % 4);
    plan.phase.out_tag = static_cast<uint8_t>(out % 4);
    plan.phase.extra_tag = static_cast<uint8_t>(extra % 4);
    return plan;
  }

  Status matvec(PhasePlan plan, Shape shape) {
    uint64_t rows = 0;
    const uint64_t cols = plan.matrices.front().cols;
    for (const WeightRef& w : plan.matrices) {
      if (!is_half(w.type) || w.cols != cols)
        return fail("weights of {}", tensor_type_name(w.type));
      if (schedule_.phases.empty()) schedule_.weight_type = w.type;
      if (w.type != schedule_.weight_type) return fail("weights of two types");
      rows += w.rows;
    }
    if (cols % 32 != 0) return fail("{} columns, no multiple of 32", cols);
    const bool gate = shape.finish == Finish::kGate;
    if (gate && plan.matrices[0].rows != plan.matrices[1].rows) return fail("gate and up differ");
    shape.kind = PhaseKind::kMatvec;
    shape.cols = narrow(cols);
    shape.rows = narrow(gate ? rows / 2 : rows);
    shape.n_blocks = narrow(div_up(gate ? div_up(rows / 2, 4) * 8 : rows, kSlotRows));
    shape.n_chunks = narrow(div_up(cols, kSlotColumns));
    // What the feed-forward leaves is there early but for its last rows: down takes it in parts.
    const bool staged = plan.matrices.size() == 1 && shape.in == buffers_.hidden;
    shape.stage_chunks = staged ? std::min(shape.n_chunks, 2u) : shape.n_chunks;
    if (shape.stage_chunks > kMaxStageChunks) {
      return fail("{} columns; at most {} run here", cols, kMaxStageChunks * kSlotColumns);
    }
    shape.n_stages = narrow(div_up(shape.n_chunks, shape.stage_chunks));
    const uint64_t per_cta = div_up(shape.n_blocks, geometry_.n_ctas);
    if (shape.n_stages > 1 && per_cta > kMaxPlaces) return fail("{} rows, too many", rows);
    const bool owned = shape.finish == Finish::kStore || shape.finish == Finish::kAdd;
    if (owned && per_cta * kSlotRows > kMaxOwnedRows) return fail("{} rows, too many", rows);
    add_phase(std::move(plan), shape);
    return {};
  }

  void add_phase(PhasePlan plan, const Shape& shape) {
    auto at = std::find(schedule_.shapes.begin(), schedule_.shapes.end(), shape);
    if (at == schedule_.shapes.end()) at = schedule_.shapes.insert(at, shape);
    plan.phase.shape = static_cast<uint16_t>(at - schedule_.shapes.begin());
    if (shape.kind == PhaseKind::kMatvec) {
      plan.phase.rotate = static_cast<uint16_t>(rotate_);
      rotate_ = (rotate_ + shape.n_blocks) % geometry_.n_ctas;
    }
    schedule_.phases.push_back(std::move(plan));
  }

  // Warps of a CTA may be as far apart as the ring and the slots held in registers allow.
  static uint32_t places(const Shape& shape, uint32_t ring_slots, uint32_t n_ctas) {
    const uint64_t apart = div_up(ring_slots + 2 * kPairs, shape.n_chunks) + 2;
    const uint64_t most = div_up(shape.n_blocks, n_ctas);
    uint32_t n = 1;
    while (n < (shape.n_stages > 1 ? most : std::min(apart, most))) n *= 2;
    return n;
  }

  Status divide_shared_memory() {
    uint32_t need = 0;
    for (uint32_t ring = 12; ring >= kPairs; ring -= kPairs) {
      const SharedPlan plan = divide(ring);
      need = plan.total;
      if (plan.total > geometry_.shared_bytes) continue;
      schedule_.shared = plan;
      return {};
    }
    return fail("{} bytes of shared memory needed, {} there", need, geometry_.shared_bytes);
  }

  SharedPlan divide(uint32_t ring_slots) {
    SharedPlan plan{.ring_slots = ring_slots};
    uint32_t sums = 0;
    uint32_t attention = 0;
    for (Shape& shape : schedule_.shapes) {
      if (shape.kind == PhaseKind::kAttend) {
        attention = std::max(attention, kConsumerWarps * shape.group * (shape.head_dim + 2) * 4);
        // q, k and v lie where an activation would.
        const uint32_t heads = (shape.group + 2) * shape.head_dim * 4;
        plan.region_bytes = std::max(plan.region_bytes, heads);
        continue;
      }
      shape.open_blocks = places(shape, ring_slots, geometry_.n_ctas);
      sums = std::max(sums, shape.open_blocks * shape.n_chunks * 2 * kSlotRows * 4);
      plan.stage_chunks = std::max(plan.stage_chunks, shape.stage_chunks);
      plan.region_bytes = std::max(plan.region_bytes, shape.stage_chunks * kSlotColumns * 4);
    }
    uint32_t at = ring_slots * kSlotBytes;
    const auto take = [&](uint64_t bytes) {
      const uint32_t place = at;
      at += narrow(round_up(bytes, 128));
      return place;
    };
    plan.activations = take(2 * plan.region_bytes);
    plan.partial_sums = take(sums);
    plan.attention = take(attention);
    plan.owned = take(2 * kMaxOwnedRows * 4);
    plan.shapes = take(schedule_.shapes.size() * sizeof(Shape));
    plan.phases = take(schedule_.phases.size() * sizeof(Phase));
    plan.works = take(schedule_.phases.size() * sizeof(Work));
    plan.total = at;
    return plan;
  }

  // The first layers' weights: any 1 % of the bytes would do.
  void keep_in_l2() {
    uint64_t left = geometry_.keep_bytes;
    for (PhasePlan& plan : schedule_.phases) {
      const Shape& shape = schedule_.shape_of(plan);
      if (shape.kind != PhaseKind::kMatvec) continue;
      const uint64_t bytes = uint64_t{shape.n_blocks} * shape.n_chunks * kSlotBytes;
      if (bytes > left) continue;
      plan.phase.keep = 1;
      left -= bytes;
    }
  }

  const Program& program_;
  Geometry geometry_;
  Schedule schedule_;
  Buffers buffers_;
  const Attend* attend_ = nullptr;
  uint32_t n_layers_ = 0;
  uint32_t dim_ = 0;
  uint32_t pieces_ = 0;
  uint32_t rotate_ = 0;
  BufferId x_;
  BufferId q_;
  BufferId k_;
  BufferId v_;
  BufferId attended_;
  BufferId hidden_;
};

}  // namespace

Result<Schedule> make_schedule(const Program& program, const Geometry& geometry) {
  return Scheduler(program, geometry).run();
}

}  // namespace godwit::cuda::persistent
