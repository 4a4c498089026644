// Memory for the time of a call: PyTorch's, on the stream that the caller works on.
#pragma once

cudaStream_t current_stream();                    // of the current device
void* take_memory(size_t bytes, void** address);  // returns what gives it back
void give_back(void* taken);

// `count` elements; none: nothing. PyTorch hands them on in the order of the stream, so that the
// kernels between have them for themselves; in a CUDA graph they are the graph's.
template <class T>
struct Scratch {
    T* data = nullptr;

    explicit Scratch(size_t count) {
        if (count) taken = take_memory(count * sizeof(T), reinterpret_cast<void**>(&data));
    }
    ~Scratch() {
        if (taken) give_back(taken);
    }
    Scratch(const Scratch&) = delete;

   private:
    void* taken = nullptr;
};
