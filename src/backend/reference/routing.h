// How a row chooses its experts, in double precision.
#pragma once

#include <span>

namespace godwit::reference {

// The ids.size() largest of softmax(logits), by falling probability, ties to the lower id, and
// their probabilities; divided by their sum if `renormalise`.
void route_row(std::span<const double> logits, bool renormalise, std::span<double> ids,
               std::span<double> weights);

}  // namespace godwit::reference
