// Streams with priorities and events between them; a timing; what a stream prefers to keep in L2.
#include "check.cuh"

__global__ void add(float* x, float v, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += v;
}

int main() {
    const int n = 2000;
    int least, greatest, wrong = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cudaStream_t slow, fast;
    CHECK(cudaStreamCreateWithPriority(&slow, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&fast, cudaStreamNonBlocking, greatest));
    int priority = 99;
    unsigned flags = 99;
    CHECK(cudaStreamGetPriority(fast, &priority));
    CHECK(cudaStreamGetFlags(slow, &flags));
    wrong += priority != greatest || flags != cudaStreamNonBlocking || least < greatest;

    float* x = to_device(std::vector<float>(n));
    cudaStreamAttrValue attribute = {};
    attribute.accessPolicyWindow.base_ptr = x;
    attribute.accessPolicyWindow.num_bytes = n * sizeof(float);
    attribute.accessPolicyWindow.hitRatio = 0.5f;
    attribute.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    attribute.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    CHECK(cudaStreamSetAttribute(slow, cudaStreamAttributeAccessPolicyWindow, &attribute));
    cudaEvent_t begun, done;
    CHECK(cudaEventCreate(&begun));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventBlockingSync));
    CHECK(cudaEventRecord(begun, slow));
    add<<<8, 256, 0, slow>>>(x, 1, n);
    CHECK(cudaEventRecord(done, slow));
    CHECK(cudaStreamWaitEvent(fast, done, 0));
    add<<<8, 256, 0, fast>>>(x, 2, n);
    CHECK(cudaStreamSynchronize(fast));
    CHECK(cudaEventSynchronize(done));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begun, done));
    wrong += milliseconds < 0 || cudaEventQuery(done) != cudaSuccess;
    for (float v : to_host(x, n)) wrong += v != 3;
    return verdict("stream_priorities", wrong);
}
