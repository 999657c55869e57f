// Ctrl-C: the first one asks the running answer to stop, the second ends the program with 130.
#pragma once

namespace godwit::apps {

class InterruptGuard {
 public:
  InterruptGuard();  // installs the handler and forgets earlier interrupts
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();  // restores what was there

  [[nodiscard]] static bool interrupted();
  static void forget();
};

}  // namespace godwit::apps
