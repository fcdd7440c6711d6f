// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/eldr_key.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace eldr::sim {

using nlohmann::json;

json eldr_key(const signature::ExpertCounts& counts, const std::vector<std::int64_t>& layers) {
  signature::ExpertCounts chosen;
  chosen.experts = counts.experts;
  chosen.tokens = counts.tokens;
  chosen.counted = counts.counted;
  if (layers.empty()) {
    chosen.layers = counts.layers;
    chosen.counts = counts.counts;
  }
  for (const std::int64_t layer : layers) {
    const auto it = std::find(counts.layers.begin(), counts.layers.end(), layer);
    if (it == counts.layers.end()) {
      continue;
    }
    const auto row =
        counts.counts.begin() + (it - counts.layers.begin()) * static_cast<std::ptrdiff_t>(counts.experts);
    chosen.layers.push_back(*it);
    chosen.counts.insert(chosen.counts.end(), row, row + counts.experts);
  }
  const bool wide =
      std::any_of(chosen.counts.begin(), chosen.counts.end(), [](std::uint32_t c) { return c > UINT16_MAX; });
  return {{"v", 1},
          {"experts", chosen.experts},
          {"layers", chosen.layers},
          {"dtype", wide ? "u32" : "u16"},
          {"counts", signature::encode_wire_counts(chosen, wide)},
          {"tokens", chosen.tokens},
          {"counted", chosen.counted}};
}

json bad_eldr_key(const json& good, const std::string& form) {
  json bad = good;
  const std::string counts = good.at("counts").get<std::string>();
  if (form == "base64") {
    std::string broken = counts.empty() ? std::string(4, 'A') : counts;
    broken.front() = '!';
    bad["counts"] = std::move(broken);
  } else if (form == "short") {
    bad["counts"] = counts.substr(0, counts.size() / 8 * 4);
  } else if (form == "long") {
    bad["counts"] = std::string(4, 'A').append(counts);
  } else if (form == "dtype") {
    bad["dtype"] = "f64";
  } else if (form == "version") {
    bad["v"] = 99;
  } else if (form == "layers") {
    bad["layers"] = {-1, "x"};
  } else if (form == "experts") {
    bad["experts"] = good.at("experts").get<std::uint64_t>() + 1;
  } else if (form == "coverage") {
    bad["counted"] = good.at("tokens").get<std::uint64_t>() / 4;
  } else if (form == "type") {
    bad = json::array({1, 2, 3});
  } else if (form == "null") {
    bad = nullptr;
  } else if (form == "zero") {
    bad["counts"] = std::string(counts.size(), 'A');
    for (std::size_t i = counts.size(); i > 0 && counts[i - 1] == '='; --i) {
      bad["counts"].get_ref<std::string&>()[i - 1] = '=';
    }
  }
  return bad;
}

}  // namespace eldr::sim
