// llama.cpp's flags that mean nothing here: about placement, threads, caches, drafts and terminals,
// which change no text. They are taken with a warning, so that a command line made for llama.cpp
// works. Those that would change a text (--rope-scale, --lora, --control-vector) are unknown
// instead: dropping them would answer wrongly.
#pragma once

#include <cstdint>
#include <string_view>

namespace godwit::apps {

// kSwitch: may be followed by on, off, auto, 0, 1.
enum class IgnoredValue : uint8_t { kNone, kOne, kSwitch };

struct IgnoredFlag {
  std::string_view flag;
  IgnoredValue value;
};

// nullptr: not one of them.
[[nodiscard]] const IgnoredFlag* find_ignored_flag(std::string_view name);

}  // namespace godwit::apps
