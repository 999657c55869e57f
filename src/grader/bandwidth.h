// The read bandwidth of the card's memory now: the ceiling that every time is set beside. Bulk
// copies into a ring of shared memory on every SM, the best of a few ways of sharing it out.
#pragma once

#include <string>
#include <vector>

namespace godwit::grader {

struct Bandwidth {
  std::vector<double> samples_gbs;  // 10^9 bytes per second, one per pass
  std::string problem;              // why there are none
};

[[nodiscard]] Bandwidth measure_device_bandwidth();

}  // namespace godwit::grader
