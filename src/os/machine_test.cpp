// Machine facts from a made-up /sys, and that the real one does not contradict itself.
#include "os/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace godwit {
namespace {

namespace fs = std::filesystem;

class MachineTest : public ::testing::Test {
 protected:
  MachineTest()
      : root_(fs::temp_directory_path() / ("godwit-machine-" + std::to_string(::getpid()))) {}
  ~MachineTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& line) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << line << "\n";
  }

  fs::path root_;
};

TEST_F(MachineTest, CountsWhatIsShared) {
  const std::string cpu = "sys/devices/system/cpu/";
  put(cpu + "online", "0-3");
  put(cpu + "cpufreq/ignored", "x");
  for (int i = 0; i < 4; ++i) {
    const std::string one = cpu + "cpu" + std::to_string(i) + "/";
    const std::string pair = i < 2 ? "0-1" : "2-3";
    put(one + "topology/physical_package_id", "0");
    put(one + "topology/core_id", std::to_string(i / 2));
    put(one + "cache/index0/type", "Data");
    put(one + "cache/index0/level", "1");
    put(one + "cache/index0/size", "48K");
    put(one + "cache/index0/shared_cpu_list", pair);
    put(one + "cache/index3/type", "Unified");
    put(one + "cache/index3/level", "3");
    put(one + "cache/index3/size", "32M");
    put(one + "cache/index3/shared_cpu_list", "0-3");
  }
  put("sys/devices/system/node/node0/cpulist", "0-3");
  put("proc/meminfo", "MemTotal:       24000 kB");
  const MachineFacts facts = machine_facts(root_);
  EXPECT_EQ(facts.n_logical, 4u);
  EXPECT_EQ(facts.n_cores, 2u);
  EXPECT_EQ(facts.n_sockets, 1u);
  EXPECT_EQ(facts.n_memory_nodes, 1u);
  EXPECT_EQ(facts.memory_bytes, 24000u * 1024);
  ASSERT_EQ(facts.caches.size(), 2u);
  EXPECT_EQ(facts.caches[0].kind, "data");
  EXPECT_EQ(facts.caches[0].bytes, 48u * 1024);
  EXPECT_EQ(facts.caches[0].n_caches, 2u);
  EXPECT_EQ(facts.caches[0].n_sharing, 2u);
  EXPECT_EQ(facts.caches[1].n_caches, 1u);
  EXPECT_EQ(facts.caches[1].n_sharing, 4u);
}

TEST_F(MachineTest, WithoutASystemNothingIsKnown) {
  const MachineFacts facts = machine_facts(root_);
  EXPECT_EQ(facts.n_logical, 0u);
  EXPECT_TRUE(facts.caches.empty());
  EXPECT_EQ(facts.memory_bytes, 0u);
}

TEST(Machine, CountsLists) {
  EXPECT_EQ(count_of_list("0"), 1u);
  EXPECT_EQ(count_of_list("0-3,8,10-11"), 7u);
  for (const char* wrong : {"", "x", "3-1", "0-", "0-99999999999", ",", "1,,2"}) {
    EXPECT_EQ(count_of_list(wrong), 0u) << wrong;
  }
}

TEST(Machine, ThisOneHasMemoryAndProcessors) {
  const MachineFacts facts = machine_facts();
  EXPECT_GE(facts.n_logical, facts.n_cores);
  EXPECT_GT(facts.memory_bytes, uint64_t{64} << 20);
}

}  // namespace
}  // namespace godwit
