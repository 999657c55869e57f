// What every target holds its parser to: require() ends the run as a finding, good() lets a
// refusal pass if it is one line of words.
#pragma once

#include <string>

#include "base/result.h"

namespace godwit {

inline void require(bool condition) {
  if (!condition) __builtin_trap();
}

template <class T>
bool good(const Result<T>& result) {
  if (result) return true;
  require(!result.error().message.empty());
  require(result.error().message.find('\n') == std::string::npos);
  return false;
}

}  // namespace godwit
