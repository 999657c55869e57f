#include "apps/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace godwit::apps {
namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free data");
struct sigaction previous_action;

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) _exit(130);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  forget();
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;  // a wait for the next message goes on
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

bool InterruptGuard::interrupted() { return interrupts.load() > 0; }

void InterruptGuard::forget() { interrupts.store(0); }

}  // namespace godwit::apps
