#include "tests/bench/paper_tables.h"

namespace stowage {

const std::vector<PaperFigures>& AllPaperFigures() {
  constexpr auto kNone = std::nullopt;
  using R = ReforwardingFigures;
  // clang-format off
  static const auto* const kFigures = new std::vector<PaperFigures>{
      {"alexnet", R{3550, 3108, 2620, 0.74, 0.58}, 4955, 4408, 4408, 3287, 34, 12, 0.097},
      {"vgg11", R{2976, 2292, 1802, 0.61, 0.50}, 3577, 2781, 2781, 2781, 34, 17, 0.198},
      {"vgg13", R{4152, 2586, 2586, 0.62, 0.53}, 5136, 3565, 3565, 3565, 33, 19, 0.274},
      {"vgg16", R{4470, 2894, 2586, 0.58, 0.49}, 5136, 4352, 3957, 3565, 32, 22, 0.416},
      {"vgg19", R{4788, 2894, 2502, 0.52, 0.47}, 5189, 4548, 3957, 3565, 33, 25, 0.531},
      {"resnet18", R{5402, 2898, 2898, 0.54, 0.37}, 5635, 4069, kNone, 3677, 30, 51, 0.200},
      {"resnet34", R{3900, 1936, 1544, 0.40, 0.27}, 4079, 2231, kNone, 1838, 35, 91, 0.502},
      {"resnet50", R{5206, 2332, 1798, 0.35, 0.25}, 5323, 2714, kNone, 1973, 31, 125, 0.910},
      {"resnet101", R{3812, 1216, 970, 0.25, 0.19}, 3934, 2541, kNone, 1024, 35, 244, 2.690},
      {"resnet152", R{2810, 636, 564, 0.20, 0.16}, 2767, 1464, kNone, 526, 37, 363, 6.576},
      {"densenet121", R{3984, 1012, 776, 0.19, 0.19}, 4027, 1629, kNone, 898, 34, 306, 35.024},
      {"densenet161", R{3658, 744, 616, 0.17, 0.16}, 3751, 1432, kNone, 666, 36, 406, 79.754},
      {"densenet169", R{4826, 998, 848, 0.18, 0.16}, 4862, 1774, kNone, 897, 32, 426, 87.111},
      {"densenet201", R{3164, 600, 582, 0.18, 0.14}, 3146, 1242, kNone, 474, 53, 506, 160.808},
      {"inception_v3", R{2976, 1026, 910, 0.31, 0.24}, 3074, 1336, kNone, 881, 29, 219, 4.344},
      {"nasnet_a", kNone, 5832, kNone, kNone, 1129, 31, 1149, 39.098},
      {"amoebanet_a", kNone, 4944, kNone, kNone, 1058, 36, 1015, 30.250},
      {"darts_v2", kNone, 5627, kNone, kNone, 1115, 55, 1073, 28.483},
  };
  // clang-format on
  return *kFigures;
}

const PaperFigures* PaperFiguresOf(const std::string& network) {
  for (const PaperFigures& figures : AllPaperFigures()) {
    if (figures.network == network) return &figures;
  }
  return nullptr;
}

}  // namespace stowage
