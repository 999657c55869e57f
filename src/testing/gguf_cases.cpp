#include "testing/gguf_cases.h"

#include <limits>
#include <utility>

#include "testing/gguf_bytes.h"

namespace godwit::testing {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kI8 = 24;

using Cases = std::vector<GgufCase>;

void add(Cases& cases, std::string name, std::string_view message, const GgufBytes& file) {
  cases.push_back({.name = std::move(name), .message = message, .bytes = file.bytes()});
}

// A valid head with one metadata entry, for what comes after it.
GgufBytes with_entry(uint64_t n_tensors) {
  return GgufBytes().head(3, n_tensors, 1).entry("general.architecture", 8).string("llama");
}

// One tensor of 32 weights at offset 0, then `data` bytes.
GgufBytes one_tensor(std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset,
                     size_t data) {
  return with_entry(1).tensor("w", dims, type, offset).pad(32).zeros(data);
}

void add_scalars(GgufBytes& file) {
  file.entry("u8", 0).u8(255).entry("i8", 1).put(int8_t{-1});
  file.entry("u16", 2).u16(65535).entry("i16", 3).put(int16_t{-2});
  file.entry("u32", 4).u32(7).entry("i32", 5).put(int32_t{-3}).entry("f32", 6).put(1.5f);
  file.entry("true", 7).u8(1).entry("false", 7).u8(0).entry("string", 8).string("text");
  file.entry("u64", 10).u64(kHuge).entry("i64", 11).put(int64_t{-4}).entry("f64", 12).put(2.5);
}

void add_arrays(GgufBytes& file) {
  file.array("u8s", 0, 2).u8(1).u8(2).array("i8s", 1, 1).put(int8_t{-1});
  file.array("u16s", 2, 1).u16(3).array("i16s", 3, 1).put(int16_t{-2});
  file.array("u32s", 4, 1).u32(4).array("i32s", 5, 1).put(int32_t{-3});
  file.array("f32s", 6, 2).put(0.5f).put(-0.5f).array("bools", 7, 3).u8(1).u8(0).u8(1);
  file.array("strings", 8, 2).string("a").string("").array("u64s", 10, 1).u64(kHuge);
  file.array("i64s", 11, 1).put(int64_t{-4}).array("f64s", 12, 1).put(0.25);
  file.array("none", 4, 0);
}

void add_valid(Cases& cases) {
  add(cases, "valid_v2_empty", "", GgufBytes().head(2, 0, 0));
  add(cases, "valid_v3_empty", "", GgufBytes().head(3, 0, 0));
  GgufBytes all = GgufBytes().head(3, 0, 26);
  add_scalars(all);
  add_arrays(all);
  add(cases, "valid_v3_every_value_type", "", all);
  add(cases, "valid_v2_tensor", "",
      GgufBytes()
          .head(2, 1, 1)
          .entry_u32("a.count", 4)
          .tensor("w", {32, 2}, kQ4_0, 0)
          .pad(32)
          .zeros(36));
  add(cases, "valid_v3_two_tensors", "",
      with_entry(2)
          .tensor("blk.0.attn_q.weight", {32, 2, 2}, kQ4_0, 0)
          .tensor("blk.0.attn_norm.weight", {5}, kF32, 96)
          .pad(32)
          .zeros(96 + 20));
  add(cases, "valid_v3_tensors_in_any_order", "",
      with_entry(2).tensor("b", {8}, kF32, 64).tensor("a", {8}, kF32, 0).pad(32).zeros(96));
  add(cases, "valid_v3_alignment_64", "",
      GgufBytes()
          .head(3, 1, 1)
          .entry_u32("general.alignment", 64)
          .tensor("w", {1, 1, 1, 1}, kF32, 64)
          .pad(64)
          .zeros(68));
  add(cases, "valid_v3_name_of_64_bytes", "",
      with_entry(1).tensor(std::string(64, 'n'), {1}, kF32, 0).pad(32).zeros(4));
  add(cases, "valid_v3_trailing_bytes", "", one_tensor({32}, kF32, 0, 128 + 77));
  add(cases, "valid_v3_first_shard", "",
      GgufBytes()
          .head(3, 0, 3)
          .entry_u16("split.no", 0)
          .entry_u16("split.count", 2)
          .entry("split.tensors.count", 5)
          .put(int32_t{1}));
}

void add_other_files(Cases& cases) {
  const auto text = [&](std::string name, std::string_view message, std::string_view content) {
    add(cases, std::move(name), message, GgufBytes().text(content));
  };
  text("other_html", "is a web page", "<!DOCTYPE html><html><head><title>404</title>");
  text("other_html_indented", "is a web page", "\xef\xbb\xbf\r\n  <html>");
  text("other_link", "starts with a link", "https://example.com/model.gguf\n");
  text("other_lfs_pointer", "git-LFS pointer",
       "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 98362432\n");
  text("other_json", "is JSON", "{\"error\":\"Repository not found\"}");
  text("other_zip", "a zip archive", "PK\x03\x04 data");
  text("other_ggjt", "older than GGUF", std::string_view("tjgg\x03\0\0\0", 8));
  text("other_magic", "expected the magic 'GGUF'", "MZ\x90 a program");
  text("other_magic_control", "found '\\x01\\x02\\x7fa'",
       "\x01\x02\x7f"
       "abc");
}

void add_versions_and_counts(Cases& cases) {
  add(cases, "magic_truncated", "ends inside the magic", GgufBytes().text("GG"));
  add(cases, "version_truncated", "the file ends in the version: 4 bytes are needed, 2 are left",
      GgufBytes().text("GGUF").u16(3));
  add(cases, "version_0", "the format version is 0, expected 2 or 3", GgufBytes().head(0, 0, 0));
  add(cases, "version_1", "the format version is 1, expected 2 or 3: convert",
      GgufBytes().text("GGUF").u32(1).u32(0).u32(0));
  add(cases, "version_4", "the format version is 4, expected 2 or 3; at byte 0x4",
      GgufBytes().head(4, 0, 0));
  add(cases, "version_big_endian", "the file is big-endian (version 3",
      GgufBytes().head(0x03000000, 0, 0));
  add(cases, "counts_truncated", "the file ends in the counts: 8 bytes are needed, 4 are left",
      GgufBytes().text("GGUF").u32(3).u64(0).u32(0));
  add(cases, "count_of_tensors", "18446744073709551615 tensors are promised, but the 16 bytes",
      GgufBytes().head(3, kHuge, 0).zeros(16));
  add(cases, "count_of_entries", "9223372036854775808 metadata entries are promised",
      GgufBytes().head(3, 0, 1ull << 63).zeros(16));
  add(cases, "count_of_entries_by_one", "2 metadata entries are promised, but the 27 bytes left",
      GgufBytes().head(3, 0, 2).entry("key", 8).string("four"));
}

void add_metadata(Cases& cases) {
  const auto head = [] { return GgufBytes().head(3, 0, 1); };
  add(cases, "key_empty", "metadata entry 0 has an empty key; at byte 0x18",
      head().entry("", 4).u32(1));
  add(cases, "key_longer_than_the_file", "the file ends in metadata entry 0: 60000 bytes",
      head().u64(60000).zeros(16));
  add(cases, "key_over_65535", "its key is 65536 bytes long, expected at most 65535",
      head().u64(65536).zeros(16));
  add(cases, "key_twice", "metadata key 'a' appears twice; at byte 0x37",
      GgufBytes().head(3, 0, 3).entry_u32("a", 1).entry("b", 7).u8(0).entry_u32("a", 2));
  add(cases, "value_type_13", "metadata key 'k' has value type 13 (unknown); at byte 0x21",
      head().entry("k", 13).zeros(8));
  add(cases, "value_truncated", "ends in metadata key 'key': 8 bytes are needed, 4 are left (4 mis",
      head().entry("key", 10).u32(1));
  add(cases, "string_longer_than_the_file", "ends in metadata key 'k': 1000 bytes are needed, 3",
      head().entry("k", 8).u64(1000).text("abc"));
  add(cases, "string_length_huge", "metadata key 'k': its string is 18446744073709551615 bytes",
      head().entry("k", 8).u64(kHuge).text("abc"));
  add(cases, "bool_2", "metadata key 'k': a bool is 2, expected 0 or 1; at byte 0x25",
      head().entry("k", 7).u8(2));
  add(cases, "array_bool_255", "metadata key 'k': a bool is 255",
      head().array("k", 7, 2).u8(1).u8(255));
  add(cases, "array_of_unknown", "metadata key 'k' is an array of type 99 (unknown); at byte 0x25",
      head().array("k", 99, 1).u32(0));
  add(cases, "array_nested", "metadata key 'k' is an array of arrays, which is not supported",
      head().array("k", 9, 1).u32(4).u64(1).u32(5));
  add(cases, "array_longer_than_the_file",
      "1000000 elements of metadata key 'k' are promised, but the 8 bytes left can hold at most 2",
      head().array("k", 4, 1000000).u64(0));
  add(cases, "array_length_huge", "18446744073709551615 elements of metadata key 'k'",
      head().array("k", 0, kHuge).u64(0));
  add(cases, "array_string_too_long", "its string is 281474976710656 bytes long",
      head().array("k", 8, 2).string("ok").u64(1ull << 48).zeros(8));
  add(cases, "array_head_truncated", "the file ends in metadata key 'k': 8 bytes are needed, 1",
      head().entry("k", 9).u32(4).u8(1));
  for (const uint32_t alignment : {0u, 4u, 48u, 1u << 21}) {
    add(cases, "alignment_" + std::to_string(alignment),
        "expected a power of two from 8 to 1048576",
        head().entry_u32("general.alignment", alignment));
  }
  add(cases, "alignment_is_a_string", "general.alignment is string, expected u32; at byte 0x18",
      head().entry("general.alignment", 8).string("32"));
}

void add_directory(Cases& cases) {
  add(cases, "tensor_name_empty", "tensor 0 has an empty name",
      with_entry(1).tensor("", {1}, kF32, 0).pad(32).zeros(4));
  add(cases, "tensor_name_over_64", "its name is 65 bytes long, expected at most 64",
      with_entry(1).tensor(std::string(65, 'n'), {1}, kF32, 0).pad(32).zeros(4));
  add(cases, "tensor_twice", "tensor 'w' appears twice",
      with_entry(2).tensor("w", {8}, kF32, 0).tensor("w", {8}, kF32, 32).pad(32).zeros(64));
  add(cases, "tensor_type_37", "tensor 'w' has type 37 (unknown); at byte 0x5a of ",
      one_tensor({32}, 37, 0, 128));
  add(cases, "tensor_type_removed", "tensor 'w' has type 4 (unknown)", one_tensor({32}, 4, 0, 128));
  add(cases, "tensor_truncated", "the file ends in tensor 'w'",
      with_entry(1).string("w").u32(2).u64(1).u64(1).u32(0));
  add(cases, "dims_none", "tensor 'w' has 0 dimensions, expected 1 to 4",
      with_entry(1).tensor("w", {}, kF32, 0).pad(32).zeros(32));
  add(cases, "dims_5", "tensor 'w' has 5 dimensions, expected 1 to 4",
      one_tensor({1, 1, 1, 1, 1}, kF32, 0, 4));
  add(cases, "dims_zero", "tensor 'w' has a dimension of 0 in [4, 0]",
      one_tensor({4, 0}, kF32, 0, 16));
  add(cases, "dims_product_overflows", "tensor 'w' has dimensions [4294967296, 4294967296, 32]",
      one_tensor({1ull << 32, 1ull << 32, 32}, kF32, 0, 16));
  add(cases, "dims_bytes_overflow", "whose product overflows",
      one_tensor({1ull << 31, 1ull << 31, 1}, kF32, 0, 16));
  add(cases, "dims_wrap_to_small", "whose product overflows",
      one_tensor({1ull << 62, 4, 1, 1}, kF32, 0, 16));
  add(cases, "row_not_whole_blocks", "has rows of 33 weights, expected a multiple of 32 for Q4_0",
      one_tensor({33}, kQ4_0, 0, 64));
}

void add_placement(Cases& cases) {
  add(cases, "offset_unaligned", "tensor 'w' has offset 8, expected a multiple of the alignment 32",
      one_tensor({2}, kF32, 8, 32));
  add(cases, "offset_wraps_into_the_header", "beyond any file (the sum overflows)",
      one_tensor({2}, kF32, kHuge - 31, 32));
  add(cases, "offset_plus_size_overflows", "beyond any file (the sum overflows)",
      one_tensor({2}, kF32, (1ull << 63) - 128, 32));
  add(cases, "offset_outside", "tensor 'w' ends at byte 1064: 904 bytes are missing",
      one_tensor({2}, kF32, 928, 32));
  add(cases, "data_truncated", "tensor 'w' ends at byte 272: 28 bytes are missing",
      one_tensor({36}, kF32, 0, 116));
  add(cases, "data_absent", "bytes are missing", with_entry(1).tensor("w", {32}, kF32, 0));
  add(cases, "tensors_overlap", "inside tensor 'a'",
      with_entry(2).tensor("a", {16}, kF32, 0).tensor("b", {8}, kF32, 32).pad(32).zeros(64));
  // Offsets are aligned, so that a single byte is shared only by an odd size.
  add(cases, "tensors_overlap_by_one_byte", "inside tensor 'a'",
      with_entry(2).tensor("a", {33}, kI8, 0).tensor("b", {32}, kI8, 32).pad(32).zeros(64));
  add(cases, "tensors_coincide", "inside tensor 'a'",
      with_entry(2).tensor("a", {8}, kF32, 32).tensor("b", {8}, kF32, 32).pad(32).zeros(64));
  add(cases, "tensor_inside_another", "tensor 'b' starts at byte",
      with_entry(2).tensor("b", {1}, kF32, 32).tensor("a", {64}, kF32, 0).pad(32).zeros(256));
}

}  // namespace

std::vector<GgufCase> gguf_cases() {
  Cases cases;
  add_valid(cases);
  add_other_files(cases);
  add_versions_and_counts(cases);
  add_metadata(cases);
  add_directory(cases);
  add_placement(cases);
  return cases;
}

}  // namespace godwit::testing
