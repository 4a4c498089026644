// What GroupNorm adds to a variance, from chapter 08 on: PyTorch's own.
#pragma once

constexpr float EPS = 1e-5f;
