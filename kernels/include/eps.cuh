// What GroupNorm adds to a variance, in chapters 08 and 09: PyTorch's own.
#pragma once

constexpr float EPS = 1e-5f;
