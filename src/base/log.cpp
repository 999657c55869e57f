#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace godwit::log {
namespace {

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("godwit", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%l: %v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

}  // namespace

void set_level(Level level) {
  switch (level) {
    case Level::kDebug:
      logger().set_level(spdlog::level::debug);
      return;
    case Level::kInfo:
      logger().set_level(spdlog::level::info);
      return;
    case Level::kWarn:
      logger().set_level(spdlog::level::warn);
      return;
    case Level::kError:
      logger().set_level(spdlog::level::err);
      return;
  }
}

void debug(std::string_view message) { logger().debug(message); }
void info(std::string_view message) { logger().info(message); }
void warn(std::string_view message) { logger().warn(message); }

}  // namespace godwit::log
