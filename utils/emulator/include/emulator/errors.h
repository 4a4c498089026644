// CUDA's errors, by name, number and text.
#pragma once

#define EMU_ERRORS(X)                                                                   \
    X(cudaSuccess, 0, "no error")                                                       \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                     \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                    \
    X(cudaErrorInitializationError, 3, "initialization error")                          \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")               \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                         \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                              \
    X(cudaErrorInvalidHostPointer, 16, "invalid host pointer")                          \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                      \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")         \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                    \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                     \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                            \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                   \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                           \
    X(cudaErrorNotReady, 600, "device not ready")                                       \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")         \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")    \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")           \
    X(cudaErrorAssert, 710, "device-side assert triggered")                             \
    X(cudaErrorHardwareStackError, 714, "hardware stack error")                         \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")       \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                            \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                        \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch") \
    X(cudaErrorNotSupported, 801, "operation not supported")                            \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, number, text) name = number,
    EMU_ERRORS(X)
#undef X
};
typedef cudaError cudaError_t;

extern "C" {
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
}
