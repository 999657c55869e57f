#include "backend/cuda/persistent/schedule_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "backend/cuda/persistent/layout.h"

namespace godwit::cuda::persistent {
namespace {

Status check_weight(const Schedule& s, const PhasePlan& plan) {
  const Shape& shape = s.shape_of(plan);
  if (plan.phase.rotate >= s.n_ctas) return fail("{}: rotated beyond the CTAs", plan.label);
  if (shape.n_chunks * kSlotColumns < shape.cols) return fail("{}: columns left out", plan.label);
  const uint32_t rows_per_block = shape.finish == Finish::kGate ? kSlotRows / 2 : kSlotRows;
  if (shape.n_blocks * rows_per_block < shape.rows) return fail("{}: rows left out", plan.label);
  std::vector<uint8_t> eaten(size_t{shape.n_blocks} * shape.n_chunks);
  for (uint32_t cta = 0; cta < s.n_ctas; ++cta) {
    const Blocks mine = blocks_of(shape, plan.phase.rotate, cta, s.n_ctas);
    if (shape.n_stages > 1 && mine.count > shape.open_blocks) {
      return fail("{}: {} blocks open in {} places", plan.label, mine.count, shape.open_blocks);
    }
    for (uint32_t stage = 0; stage < shape.n_stages; ++stage) {
      for (uint32_t i = 0; i < mine.count; ++i) {
        for (uint32_t c = 0; c < stage_width(shape, stage); ++c) {
          const ChunkPlace want{mine.first + i * s.n_ctas, stage * shape.stage_chunks + c};
          const uint32_t slot = slot_index(shape, stage, want.block, c);
          if (slot >= eaten.size() || eaten[slot] != 0 || place_of_slot(shape, slot) != want) {
            return fail("{}: slot {} is not block {}, chunk {} alone", plan.label, slot, want.block,
                        want.chunk);
          }
          eaten[slot] = 1;
        }
      }
    }
  }
  if (std::find(eaten.begin(), eaten.end(), 0) != eaten.end()) {
    return fail("{}: a slot that nobody eats", plan.label);
  }
  return {};
}

Status check_positions(const Schedule& s, const PhasePlan& plan, uint32_t position) {
  const Shape& shape = s.shape_of(plan);
  if (shape.pieces == 0 || shape.n_kv_heads * shape.pieces > s.n_ctas) {
    return fail("{}: {} pieces for {} CTAs", plan.label, shape.n_kv_heads * shape.pieces, s.n_ctas);
  }
  if (shape.pieces > kMaxPieces) return fail("{}: {} pieces", plan.label, shape.pieces);
  std::vector<uint8_t> seen(position);
  uint32_t owners = 0;
  const uint32_t per_slot = slot_positions(shape.head_dim);
  for (uint32_t piece = 0; piece < shape.pieces; ++piece) {
    if (piece == own_piece(shape, position)) ++owners;
    for (uint32_t j = 0; j < piece_slots(shape, piece, position); ++j) {
      const uint32_t first = (piece + j * shape.pieces) * per_slot;
      for (uint32_t p = first; p < std::min(first + per_slot, position); ++p) {
        seen[p] = static_cast<uint8_t>(seen[p] + 1);
      }
    }
  }
  if (owners != 1) return fail("{}: {} pieces own the token's position", plan.label, owners);
  if (std::count(seen.begin(), seen.end(), uint8_t{1}) != static_cast<ptrdiff_t>(position)) {
    return fail("{}: a position that is not attended exactly once", plan.label);
  }
  return {};
}

struct Words {
  uint32_t n = 0;
  EdgeShape edge;
};

// Every buffer of words, by its place.
std::map<uint32_t, Words> buffers_of(const Schedule& s) {
  std::map<uint32_t, Words> out;
  const auto add = [&](const EdgeShape& edge, uint32_t n) {
    Words& w = out[edge.offset];
    w.edge = edge;
    w.n = std::max(w.n, n);
  };
  add(s.embed.out, static_cast<uint32_t>(s.embed.table.cols));
  for (const PhasePlan& plan : s.phases) {
    const Shape& shape = s.shape_of(plan);
    if (shape.kind == PhaseKind::kAttend) {
      add(shape.in, (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim);
      add(shape.out, shape.n_heads * shape.head_dim);
      add(shape.extra, shape.n_kv_heads * shape.pieces * partial_words(shape));
    } else {
      add(shape.in, shape.cols);
      if (shape.finish != Finish::kLogits) add(shape.out, shape.rows);
    }
  }
  return out;
}

// Half phases: an attention is 2p (its pieces), then 2p + 1 (its merge); a mat-vec 2p + 1.
using Clock = std::vector<uint32_t>;  // [n_ctas]: what each CTA is known to be done with

void join(Clock& into, const Clock& other) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
}

struct Version {
  uint32_t number = 0;                                 // in the token
  std::vector<std::pair<uint32_t, Clock>> writers;     // and what they knew
  std::vector<std::pair<uint32_t, uint32_t>> readers;  // CTA, half phase
};

class Replay {
 public:
  explicit Replay(const Schedule& s) : s_(s), known_(s.n_ctas, Clock(s.n_ctas)) {}

  Status run() {
    if (Status status = buffers_apart(); !status) return status;
    Version first;
    for (uint32_t c = 0; c < s_.n_ctas; ++c) first.writers.emplace_back(c, known_[c]);
    live_[s_.embed.out.offset] = std::move(first);
    for (uint32_t p = 0; p < s_.phases.size(); ++p) {
      const Shape& shape = s_.shape_of(s_.phases[p]);
      Status status = shape.kind == PhaseKind::kAttend ? attend(p) : matvec(p);
      if (!status) return fail(std::move(status).error().with(s_.phases[p].label));
    }
    for (const auto& [offset, version] : live_) {
      const uint32_t step = buffers_.at(offset).edge.step;
      if ((version.number + 1) % 4 != step) {
        return fail("a buffer of {} versions goes on by {}", version.number + 1, step);
      }
    }
    return {};
  }

 private:
  Status buffers_apart() {
    buffers_ = buffers_of(s_);
    uint32_t end = 0;
    for (const auto& [offset, words] : buffers_) {
      if (offset < end) return fail("two buffers of activations overlap at word {}", offset);
      end = offset + words.n;
    }
    if (end > s_.n_words) return fail("activations end at word {} of {}", end, s_.n_words);
    return {};
  }

  // CTA c sees all of a version.
  Status read(const EdgeShape& edge, uint8_t tag, std::span<const uint32_t> ctas, uint32_t half) {
    const auto at = live_.find(edge.offset);
    if (at == live_.end()) return fail("reads what was never written");
    Version& version = at->second;
    if (version.number % 4 != tag) {
      return fail("awaits tag {} of a version with tag {}", tag, version.number % 4);
    }
    Clock all(s_.n_ctas);
    for (const auto& [cta, clock] : version.writers) join(all, clock);
    for (const uint32_t c : ctas) {
      join(known_[c], all);
      version.readers.emplace_back(c, half);
    }
    return {};
  }

  Status write(const EdgeShape& edge, uint8_t tag, std::span<const uint32_t> ctas, uint32_t half) {
    Version next;
    const auto at = live_.find(edge.offset);
    if (at != live_.end()) {
      next.number = at->second.number + 1;
      for (const uint32_t c : ctas) {
        for (const auto& [reader, when] : at->second.readers) {
          if (reader != c && known_[c][reader] < when + 1) {
            return fail("CTA {} may overwrite what CTA {} still reads", c, reader);
          }
        }
      }
    }
    if (next.number % 4 != tag) return fail("writes tag {}, not {}", tag, next.number % 4);
    for (const uint32_t c : ctas) {
      known_[c][c] = half + 1;
      next.writers.emplace_back(c, known_[c]);
    }
    live_[edge.offset] = std::move(next);
    return {};
  }

  Status matvec(uint32_t p) {
    const PhasePlan& plan = s_.phases[p];
    const Shape& shape = s_.shape_of(plan);
    const uint32_t half = 2 * p + 1;
    std::vector<uint32_t> ctas;
    for (uint32_t c = 0; c < s_.n_ctas; ++c) {
      if (blocks_of(shape, plan.phase.rotate, c, s_.n_ctas).count != 0) ctas.push_back(c);
    }
    if (Status s = read(shape.in, plan.phase.in_tag, ctas, half); !s) return s;
    if (shape.finish == Finish::kAdd) {
      if (Status s = read(shape.extra, plan.phase.extra_tag, ctas, half); !s) return s;
    }
    if (shape.finish == Finish::kLogits) return {};
    return write(shape.out, plan.phase.out_tag, ctas, half);
  }

  Status attend(uint32_t p) {
    const PhasePlan& plan = s_.phases[p];
    const Shape& shape = s_.shape_of(plan);
    std::vector<uint32_t> pieces(shape.n_kv_heads * shape.pieces);
    for (uint32_t c = 0; c < pieces.size(); ++c) pieces[c] = c;
    std::vector<uint32_t> mergers(std::min(merge_items(shape), s_.n_ctas));
    for (uint32_t c = 0; c < mergers.size(); ++c) mergers[c] = c;
    if (Status s = read(shape.in, plan.phase.in_tag, pieces, 2 * p); !s) return s;
    if (Status s = write(shape.extra, plan.phase.extra_tag, pieces, 2 * p); !s) return s;
    if (Status s = read(shape.extra, plan.phase.extra_tag, mergers, 2 * p + 1); !s) return s;
    return write(shape.out, plan.phase.out_tag, mergers, 2 * p + 1);
  }

  const Schedule& s_;
  std::vector<Clock> known_;
  std::map<uint32_t, Words> buffers_;
  std::map<uint32_t, Version> live_;  // by place
};

struct PhaseSlots {
  uint32_t end = 0;  // of the CTA's stream
  bool attention = false;
};

// A CTA's loader and pairs of warps over the whole token, inputs taken to be there when asked for:
// what is left to block is the ring.
Status simulate_ring(const Schedule& s, uint32_t cta, uint32_t position) {
  std::vector<PhaseSlots> phases;
  uint32_t total = 0;
  for (const PhasePlan& plan : s.phases) {
    const Shape& shape = s.shape_of(plan);
    total += slots_of(shape, plan.phase.rotate, cta, s.n_ctas, position);
    phases.push_back({total, shape.kind == PhaseKind::kAttend});
  }
  const auto limit = [&](size_t p) {  // slots that may be held in phase p
    while (++p < phases.size() && !phases[p].attention) {
    }
    return phases[p - 1].end;
  };
  const uint32_t ring = s.shared.ring_slots;
  struct Pair {
    uint32_t next = 0;
    uint32_t fetched = 0;
    size_t phase = 0;
    uint32_t limit = 0;
  };
  std::array<Pair, kPairs> pairs;
  for (uint32_t i = 0; i < kPairs; ++i) pairs[i] = {i, i, 0, limit(0)};
  std::vector<bool> released(total);
  uint32_t loaded = 0;
  for (bool moved = true; moved;) {
    moved = false;
    while (loaded < total && (loaded < ring || released[loaded - ring])) {
      ++loaded;
      moved = true;
    }
    for (Pair& pair : pairs) {
      // As fetch() does: the slot after the one just eaten is taken before anything else, of
      // whatever phase it is.
      if (pair.fetched == pair.next && pair.fetched < pair.limit) {
        if (pair.fetched >= loaded) continue;
        released[pair.fetched] = true;
        pair.fetched += kPairs;
        moved = true;
      }
      while (pair.phase < phases.size() && pair.next >= phases[pair.phase].end) {
        if (phases[pair.phase].attention) pair.limit = limit(pair.phase);
        ++pair.phase;
        moved = true;
      }
      if (pair.phase == phases.size()) continue;
      const bool attention = phases[pair.phase].attention;
      const bool holds = pair.fetched > pair.next;
      if (holds && attention) return fail("CTA {}: a slot of attention is held", cta);
      if (holds) {
        pair.next += kPairs;
        moved = true;
      } else if (attention && pair.fetched < loaded) {
        released[pair.fetched] = true;
        pair.fetched += kPairs;
        pair.next += kPairs;
        moved = true;
      }
    }
  }
  for (const Pair& pair : pairs) {
    if (pair.next < total) return fail("CTA {}: blocked at slot {} of {}", cta, pair.next, total);
  }
  return {};
}

}  // namespace

Status check_schedule(const Schedule& schedule, uint32_t position) {
  const SharedPlan& shared = schedule.shared;
  if (shared.ring_slots == 0 || shared.ring_slots % kPairs != 0) {
    return fail("a ring of {} slots, no multiple of {}", shared.ring_slots, kPairs);
  }
  if (schedule.phases.empty() || schedule.phases.size() > kThreads) return fail("no such table");
  for (const PhasePlan& plan : schedule.phases) {
    const bool attend = schedule.shape_of(plan).kind == PhaseKind::kAttend;
    Status s = attend ? check_positions(schedule, plan, position) : check_weight(schedule, plan);
    if (!s) return s;
  }
  if (Status s = Replay(schedule).run(); !s) return s;
  for (uint32_t cta = 0; cta < schedule.n_ctas; ++cta) {
    if (Status s = simulate_ring(schedule, cta, position); !s) return s;
  }
  return {};
}

}  // namespace godwit::cuda::persistent
