#include "apps/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace godwit::apps {
namespace {

std::atomic<int> interrupts{0};
std::atomic<int> last_interrupt{2};  // ends the program
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free data");
struct sigaction previous_action;

void install(int flags);

void on_interrupt(int) {
  const int count = interrupts.fetch_add(1) + 1;
  if (count >= last_interrupt.load()) _exit(130);
  // A wait for input goes on after the first one; the one that asks to leave must end it.
  if (last_interrupt.load() > 2) install(0);
}

void install(int flags) {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(Second second) {
  last_interrupt.store(second == Second::kEndsAtOnce ? 2 : 3);
  interrupts.store(0);
  sigaction(SIGINT, nullptr, &previous_action);
  install(SA_RESTART);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

bool InterruptGuard::interrupted() { return interrupts.load() > 0; }

bool InterruptGuard::leaving() { return interrupts.load() > 1; }

void InterruptGuard::forget() {
  int once = 1;
  if (interrupts.compare_exchange_strong(once, 0)) install(SA_RESTART);
}

}  // namespace godwit::apps
