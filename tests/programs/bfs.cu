// Breadth-first search over a graph from a file of edges: `bfs FILE [SOURCE]`, "a b" on each line.
// Without a file: a ring of 1000 with chords. Checked against a search on the host.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <utility>
#include <vector>

#include "check.cuh"

struct Graph {  // compressed rows: the neighbours of v are at starts[v] to starts[v + 1]
    std::vector<int> starts, neighbours;
};

Graph read_graph(const char* path) {
    std::vector<std::pair<int, int>> edges;
    int vertices = 0;
    auto add = [&](int a, int b) {
        edges.push_back({a, b});
        edges.push_back({b, a});
        vertices = std::max({vertices, a + 1, b + 1});
    };
    if (FILE* file = path ? fopen(path, "r") : nullptr) {
        for (int a, b; fscanf(file, "%d %d", &a, &b) == 2;) add(a, b);
        fclose(file);
    } else if (path) {
        perror(path);
        exit(2);
    } else {
        for (int i = 0; i < 1000; ++i) add(i, (i + 1) % 1000), add(i, i * 7 % 1000);
    }
    Graph g;
    g.starts.assign(vertices + 1, 0);
    for (auto& e : edges) ++g.starts[e.first + 1];
    for (int v = 0; v < vertices; ++v) g.starts[v + 1] += g.starts[v];
    g.neighbours.resize(edges.size());
    std::vector<int> next(g.starts);
    for (auto& e : edges) g.neighbours[next[e.first]++] = e.second;
    return g;
}

// One thread for each vertex of the frontier; who finds a vertex first puts it in the next one.
__global__ void expand(const int* starts, const int* neighbours, int* distance, const int* frontier,
                       int size, int* next, int* next_size, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int v = frontier[i];
    for (int k = starts[v]; k < starts[v + 1]; ++k) {
        int w = neighbours[k];
        if (atomicCAS(&distance[w], -1, level) == -1) next[atomicAdd(next_size, 1)] = w;
    }
}

int main(int argc, char** argv) {
    Graph g = read_graph(argc > 1 ? argv[1] : nullptr);
    const int n = int(g.starts.size()) - 1, source = argc > 2 ? atoi(argv[2]) : 0;
    std::vector<int> start(n, -1);
    start[source] = 0;
    int *starts = to_device(g.starts), *neighbours = to_device(g.neighbours);
    int *distance = to_device(start), *frontier, *next, *next_size;
    CHECK(cudaMalloc(&frontier, n * sizeof(int)));
    CHECK(cudaMalloc(&next, n * sizeof(int)));
    CHECK(cudaMalloc(&next_size, sizeof(int)));
    CHECK(cudaMemcpy(frontier, &source, sizeof(int), cudaMemcpyHostToDevice));
    int launches = 0;
    for (int size = 1; size > 0; ++launches) {
        CHECK(cudaMemset(next_size, 0, sizeof(int)));
        expand<<<(size + 63) / 64, 64>>>(starts, neighbours, distance, frontier, size, next,
                                         next_size, launches + 1);
        CHECK(cudaMemcpy(&size, next_size, sizeof(int), cudaMemcpyDeviceToHost));
        std::swap(frontier, next);
    }
    std::vector<int> got(n);
    CHECK(cudaMemcpy(got.data(), distance, n * sizeof(int), cudaMemcpyDeviceToHost));

    std::vector<int> expected(start);
    std::queue<int> queue({source});
    for (; !queue.empty(); queue.pop())
        for (int k = g.starts[queue.front()]; k < g.starts[queue.front() + 1]; ++k)
            if (int w = g.neighbours[k]; expected[w] < 0) {
                expected[w] = expected[queue.front()] + 1;
                queue.push(w);
            }
    int wrong = 0;
    for (int v = 0; v < n; ++v) wrong += got[v] != expected[v];
    printf("bfs: %d vertices, %d launches, %d wrong\n", n, launches, wrong);
    return wrong != 0;
}
