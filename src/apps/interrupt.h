// Ctrl-C: the first one asks the running work to stop. The second ends the program with 130, or,
// where there is something to keep, asks it to leave; then the third ends it.
#pragma once

#include <cstdint>

namespace godwit::apps {

class InterruptGuard {
 public:
  enum class Second : uint8_t { kEndsAtOnce, kAsksToLeave };

  InterruptGuard() : InterruptGuard(Second::kEndsAtOnce) {}
  explicit InterruptGuard(Second second);  // installs the handler and forgets earlier interrupts
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();  // restores what was there

  [[nodiscard]] static bool interrupted();
  // Whether the second one has come: waits for input have ended as at its end. Never forgotten.
  [[nodiscard]] static bool leaving();
  static void forget();
};

}  // namespace godwit::apps
