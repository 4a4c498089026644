"""Memory for the time of a call, on several devices: of the emulator's one, by another name."""

from utils.emulator.programs import build_program, run_program
from utils.ground.paths import ROOT

PROGRAM = """
#include <cuda_runtime.h>

#include <cstdio>

int current = 0, told[100];

cudaError_t current_device(int* at) {
    *at = current;
    return cudaSuccess;
}
cudaError_t pool_of(cudaMemPool_t* found, int at) {
    told[at]++;
    return cudaDeviceGetDefaultMemPool(found, 0);
}
#define cudaGetDevice current_device
#define cudaDeviceGetDefaultMemPool pool_of
#include "scratch.cuh"

int main() {
    int missing = 0;
    for (int round = 0; round < 3; round++) {
        for (current = 0; current < 70; current++) {
            Scratch<float> floats(100);
            Scratch<int> ints(7), none(0);
            missing += !floats.data + !ints.data + !!none.data;
        }
    }
    printf("%d %d %d %d %d", missing, told[0], told[1], told[63], told[69]);
}
"""


def test_the_pool_of_each_device_is_told_to_keep_memory_once(tmp_path, capfd):
    header = ROOT / "kernels/include/scratch.cuh"
    (tmp_path / header.name).write_text(header.read_text())
    (tmp_path / "program.cu").write_text(PROGRAM)
    assert run_program(build_program(tmp_path / "program.cu")) == 0
    assert capfd.readouterr().out == "0 1 1 1 6"  # beyond 64 devices it is told at each call
