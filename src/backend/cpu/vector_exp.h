// exp in sixteen lanes, one polynomial for every instruction set (vector_lanes_*.h), and what is
// made of it. Unnamed namespace as in isa_rows.h.
#pragma once

namespace godwit::cpu {
namespace {

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2) / 2; ln 2 in two parts, the first
// short enough that n times it is exact. exp(r) = 1 + r + r^2 q(r), q of degree 4, minimax for the
// relative error (3.1e-9 before rounding; a Remez exchange). 0 below the smallest normal result;
// above 88.376, where n would pass 127, the argument is cut. NaN stays NaN: the bounds are the
// first operands of min, which answers the second where they do not compare.
template <class L>
[[gnu::always_inline]] inline L exp_lanes(L x) {
  const L smallest = L::splat(-87.3365448f);
  const L magic = L::splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const L cut = L::min(L::splat(88.3762589f), x);
  const L shifted = L::fma(cut, L::splat(0x1.715476p+0f), magic);
  const L n = L::sub(shifted, magic);
  const L r = L::fma(n, L::splat(-0x1.0bfbe8p-15f), L::fma(n, L::splat(-0x1.62e000p-1f), cut));
  L q = L::fma(L::splat(0x1.6a23d0p-10f), r, L::splat(0x1.123a20p-7f));
  q = L::fma(q, r, L::splat(0x1.5558f2p-5f));
  q = L::fma(q, r, L::splat(0x1.555492p-3f));
  q = L::fma(q, r, L::splat(0x1.fffffcp-2f));
  const L one_plus = L::add(L::fma(L::mul(r, r), q, r), L::splat(1.0f));
  return L::zero_where_less(x, smallest, L::mul(one_plus, L::power_of_two(shifted)));
}

// cap * tanh(x / cap), with tanh(u) = 1 - 2 / (exp(2u) + 1): within 2e-7 * cap.
template <class L>
[[gnu::always_inline]] inline L softcap_lanes(L x, L cap) {
  const L twice = L::mul(L::div(x, cap), L::splat(2.0f));
  const L e = L::add(exp_lanes(twice), L::splat(1.0f));
  return L::mul(L::sub(L::splat(1.0f), L::div(L::splat(2.0f), e)), cap);
}

}  // namespace
}  // namespace godwit::cpu
