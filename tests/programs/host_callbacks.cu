// Host functions in a stream: each runs after what was put there before it.
#include "check.cuh"

struct Notes {
    std::vector<int> order;
    int* data;
};

__global__ void write(int* x, int value) { *x = value; }

void CUDART_CB note(void* p) {
    Notes* notes = static_cast<Notes*>(p);
    notes->order.push_back(*notes->data);
}
void CUDART_CB note_status(cudaStream_t, cudaError_t status, void* p) {
    static_cast<Notes*>(p)->order.push_back(status == cudaSuccess ? 100 : -1);
}

int main() {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    Notes notes;
    CHECK(cudaMallocHost(&notes.data, sizeof(int)));
    for (int value = 1; value <= 3; ++value) {
        write<<<1, 1, 0, stream>>>(notes.data, value);
        CHECK(cudaLaunchHostFunc(stream, note, &notes));
    }
    CHECK(cudaStreamAddCallback(stream, note_status, &notes, 0));
    CHECK(cudaStreamSynchronize(stream));
    const int wrong = notes.order != std::vector<int>{1, 2, 3, 100};
    CHECK(cudaFreeHost(notes.data));
    return verdict("host_callbacks", wrong);
}
