// __fdividef(), by the CPU's division.
#include <cmath>

// The reciprocal of what is beyond 2^126 is 0, and infinity times 0 is no number.
extern "C" float emu_quick_quotient(float a, float b) noexcept {
    if (std::fabs(b) > 0x1p126f && !std::isinf(b)) return a * std::copysign(0.0f, b);
    return a / b;
}
