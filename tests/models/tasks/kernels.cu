// Small kernels, from which the honest ModelNew of each task of tasks.py is put together.
#include <torch/extension.h>

constexpr int kThreads = 128;
static int blocks(int64_t n) { return int((n + kThreads - 1) / kThreads); }

__device__ float unary_of(int op, float x, float a, float b) {
    float s = 1.0f / (1.0f + expf(-x));
    switch (op) {
        case 0: return fmaxf(x, 0.0f);
        case 1: return x > 0 ? x : a * x;
        case 2: return s;
        case 3: return tanhf(x);
        case 4: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
        case 5:
            return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
        case 6: return x * s;
        case 7: return x > 20.0f ? x : log1pf(expf(x));
        case 8: return x > 0 ? x : a * expm1f(x);
        case 9: return 1.0507009873554805f * (x > 0 ? x : 1.6732632423543772f * expm1f(x));
        case 10: return fminf(fmaxf(x, a), b);
        case 11: return fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f);
        case 12: return x * fminf(fmaxf(x + 3.0f, 0.0f), 6.0f) / 6.0f;
        case 13: return x / (1.0f + fabsf(x));
        case 14: return x * tanhf(x > 20.0f ? x : log1pf(expf(x)));
        case 15: return a * x + b;
        case 16: return fabsf(x);
        case 17: return x * x;
        case 18: return expf(x);
        case 19: return sqrtf(x);
        case 20: return fminf(x, 0.0f) - log1pf(expf(-fabsf(x)));
        case 21: return x - tanhf(x);
        case 22: return fabsf(x) > a ? (x > 0 ? x - a : x + a) : 0.0f;
        case 23: return 1.0f / x;
        case 24: return logf(x);
        default: return x;
    }
}
__global__ void unary_kernel(const float* x, float* y, int n, int op, float a, float b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = unary_of(op, x[i], a, b);
}
torch::Tensor unary(torch::Tensor x, int64_t op, double a, double b) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    int n = int(x.numel());
    unary_kernel<<<blocks(n), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, int(op),
                                          float(a), float(b));
    return y;
}

// y has n elements, or repeats: element (i / inner) % length.
__global__ void binary_kernel(const float* x, const float* y, float* z, int n, int inner,
                              int length, int op, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u = x[i], v = y[i / inner % length], d = u - v;
    float r = 0;
    if (op == 0) r = u + v;
    if (op == 1) r = d;
    if (op == 2) r = u * v;
    if (op == 3) r = u / v;
    if (op == 4) r = d * d;
    if (op == 5) r = fabsf(d) < a ? 0.5f * d * d / a : fabsf(d) - 0.5f * a;
    if (op == 6) r = fmaxf(1.0f - u * v, 0.0f);
    if (op == 7) r = v > 0 ? v * (logf(v) - u) : 0.0f;
    if (op == 8) r = -(v * fmaxf(logf(u), -100.0f) + (1 - v) * fmaxf(log1pf(-u), -100.0f));
    if (op == 9) r = fmaxf(u, v);
    if (op == 10) r = fmaxf(d + a, 0.0f);
    if (op == 11) r = (d + a) * (d + a);
    if (op == 12) r = fminf(u, v);
    z[i] = r;
}
torch::Tensor binary(torch::Tensor x, torch::Tensor y, int64_t op, int64_t inner, double a) {
    x = x.contiguous();
    y = y.contiguous();
    auto z = torch::empty_like(x);
    int n = int(x.numel());
    binary_kernel<<<blocks(n), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                           z.data_ptr<float>(), n, int(inner), int(y.numel()),
                                           int(op), float(a));
    return z;
}

// x (rows, n) -> y (rows), and at (rows) for the place of the largest or least.
__global__ void rows_kernel(const float* x, float* y, long* at, int rows, int n, int op) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* v = x + size_t(row) * n;
    double sum = 0, product = 1;
    float most = v[0], least = v[0];
    int high = 0, low = 0;
    for (int i = 0; i < n; ++i) {
        float u = v[i];
        if (u > most) most = u, high = i;
        if (u < least) least = u, low = i;
        product *= u;
        sum += op == 5 ? fabs(double(u)) : op == 6 ? double(u) * u : double(u);
    }
    double result = sum;
    if (op == 1) result = sum / n;
    if (op == 2 || op == 8) result = most, at[row] = high;
    if (op == 3 || op == 9) result = least, at[row] = low;
    if (op == 4) result = product;
    if (op == 6) result = sqrt(sum);
    if (op == 7 || op == 10) {
        double total = 0, mean = sum / n;
        for (int i = 0; i < n; ++i)
            total += op == 7 ? exp(double(v[i]) - most) : (v[i] - mean) * (v[i] - mean);
        result = op == 7 ? log(total) + most : total / (n - 1);
    }
    y[row] = float(result);
}
std::vector<torch::Tensor> rows(torch::Tensor x, int64_t op) {
    x = x.contiguous();
    int n = int(x.size(-1)), count = int(x.numel() / n);
    auto y = torch::empty(x.sizes().slice(0, x.dim() - 1), x.options());
    auto at = torch::empty(y.sizes(), x.options().dtype(torch::kLong));
    rows_kernel<<<blocks(count), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                             at.data_ptr<long>(), count, n, int(op));
    return {y, at};
}

// Each row of x (rows, n) to another of the same length.
__global__ void map_kernel(const float* x, float* y, int rows, int n, int op, float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* v = x + size_t(row) * n;
    float* w = y + size_t(row) * n;
    double sum = 0, squares = 0, size = 0, total = 0;
    float most = v[0];
    for (int i = 0; i < n; ++i) {
        sum += v[i], squares += double(v[i]) * v[i], size += fabs(double(v[i]));
        most = fmaxf(most, v[i]);
    }
    double mean = sum / n, spread = 0, run = op == 6 ? 1 : 0;
    for (int i = 0; i < n; ++i) {
        total += exp(double(v[i]) - most);
        spread += (v[i] - mean) * (v[i] - mean);
    }
    for (int i = 0; i < n; ++i) {
        double r = 0;
        if (op == 0) r = exp(double(v[i]) - most) / total;
        if (op == 1) r = double(v[i]) - most - log(total);
        if (op == 2) r = (v[i] - mean) / sqrt(spread / n + eps);
        if (op == 3) r = v[i] / sqrt(squares / n + eps);
        if (op == 4) r = v[i] / size;
        if (op == 5) r = run += v[i];
        if (op == 6) r = run *= v[i];
        if (op == 7) r = run, run += v[i];
        if (op == 8) r = v[i] / fmax(sqrt(squares), double(eps));
        if (op == 9) r = (v[i] - mean) / sqrt(spread / (n - 1) + eps);
        if (op == 10) r = v[i] - mean;
        w[i] = float(r);
    }
}
torch::Tensor map(torch::Tensor x, int64_t op, double eps) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    int n = int(x.size(-1)), count = int(x.numel() / n);
    map_kernel<<<blocks(count), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(), count, n,
                                            int(op), float(eps));
    return y;
}

// a (batch, m, k), b (batch or 1, k, n) -> (batch, m, n)
__global__ void matmul_kernel(const float* a, const float* b, float* c, int batch, int m, int k,
                              int n, int shared) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * m * n) return;
    int column = i % n, row = i / n % m, which = i / (m * n);
    float sum = 0;
    for (int j = 0; j < k; ++j)
        sum += a[(size_t(which) * m + row) * k + j] *
               b[(shared ? 0 : size_t(which) * k * n) + size_t(j) * n + column];
    c[i] = sum;
}
torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
    a = a.contiguous();
    b = b.contiguous();
    int k = int(a.size(-1)), m = int(a.size(-2)), n = int(b.size(-1));
    int batch = int(a.numel() / (m * k));
    auto c = torch::empty({batch, m, n}, a.options());
    matmul_kernel<<<blocks(c.numel()), kThreads>>>(a.data_ptr<float>(), b.data_ptr<float>(),
                                                   c.data_ptr<float>(), batch, m, k, n,
                                                   b.dim() == 2);
    return c;
}

struct Window {
    int size[3], stride[3], pad[3], dilation[3], in[3], out[3];
};
// x (n, c, in...), w (k, c / groups, size...) -> y (n, k, out...); transposed: w (c, k / groups, …)
__global__ void conv_kernel(const float* x, const float* w, const float* bias, float* y, int batch,
                            int c, int k, int groups, Window win, int transposed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int area = win.out[0] * win.out[1] * win.out[2];
    if (i >= batch * k * area) return;
    int at[3] = {i % area / (win.out[1] * win.out[2]), i % area / win.out[2] % win.out[1],
                 i % win.out[2]};
    int channel = i / area % k, which = i / (area * k);
    int inputs = c / groups, outputs = k / groups, group = channel / outputs;
    float sum = bias ? bias[channel] : 0.0f;
    for (int d = 0; d < inputs; ++d)
        for (int p = 0; p < win.size[0]; ++p)
            for (int q = 0; q < win.size[1]; ++q)
                for (int r = 0; r < win.size[2]; ++r) {
                    int tap[3] = {p, q, r}, from[3];
                    bool inside = true;
                    for (int e = 0; e < 3; ++e) {
                        if (transposed) {
                            int u = at[e] + win.pad[e] - tap[e] * win.dilation[e];
                            inside = inside && u >= 0 && u % win.stride[e] == 0;
                            from[e] = u / win.stride[e];
                        } else {
                            from[e] = at[e] * win.stride[e] - win.pad[e] + tap[e] * win.dilation[e];
                        }
                        inside = inside && from[e] >= 0 && from[e] < win.in[e];
                    }
                    if (!inside) continue;
                    int in = group * inputs + d, t = (p * win.size[1] + q) * win.size[2] + r;
                    int volume = win.size[0] * win.size[1] * win.size[2];
                    size_t weight = transposed
                                        ? (size_t(in) * outputs + channel % outputs) * volume + t
                                        : (size_t(channel) * inputs + d) * volume + t;
                    size_t place = ((size_t(which) * c + in) * win.in[0] + from[0]) * win.in[1];
                    sum += x[(place + from[1]) * win.in[2] + from[2]] * w[weight];
                }
    y[i] = sum;
}
// Of windows of values: the largest, or the mean (of all, the padding counts).
__global__ void pool_kernel(const float* x, float* y, int planes, Window win, int mean) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int area = win.out[0] * win.out[1] * win.out[2];
    if (i >= planes * area) return;
    int at[3] = {i % area / (win.out[1] * win.out[2]), i % area / win.out[2] % win.out[1],
                 i % win.out[2]};
    float sum = 0, most = -INFINITY;
    for (int p = 0; p < win.size[0]; ++p)
        for (int q = 0; q < win.size[1]; ++q)
            for (int r = 0; r < win.size[2]; ++r) {
                int tap[3] = {p, q, r}, from[3];
                bool inside = true;
                for (int e = 0; e < 3; ++e) {
                    from[e] = at[e] * win.stride[e] - win.pad[e] + tap[e] * win.dilation[e];
                    inside = inside && from[e] >= 0 && from[e] < win.in[e];
                }
                if (!inside) continue;
                size_t place = (size_t(i / area) * win.in[0] + from[0]) * win.in[1] + from[1];
                float v = x[place * win.in[2] + from[2]];
                sum += v;
                most = fmaxf(most, v);
            }
    y[i] = mean ? sum / (win.size[0] * win.size[1] * win.size[2]) : most;
}
static Window window(torch::Tensor x, std::vector<int64_t> size, std::vector<int64_t> how,
                     bool transposed) {  // how: stride, pad, dilation, output padding
    Window win;
    int extra = 3 - int(size.size());
    for (int e = 0; e < 3; ++e) {
        bool is = e >= extra;
        int64_t r = int64_t(size.size());
        auto of = [&](int64_t part, int otherwise) {
            return is ? int(how[part * r + e - extra]) : otherwise;
        };
        win.size[e] = is ? int(size[e - extra]) : 1;
        win.stride[e] = of(0, 1), win.pad[e] = of(1, 0), win.dilation[e] = of(2, 1);
        win.in[e] = is ? int(x.size(2 + e - extra)) : 1;
        int reach = win.dilation[e] * (win.size[e] - 1) + 1;
        win.out[e] = transposed
                         ? (win.in[e] - 1) * win.stride[e] - 2 * win.pad[e] + reach + of(3, 0)
                         : (win.in[e] + 2 * win.pad[e] - reach) / win.stride[e] + 1;
    }
    return win;
}
static std::vector<int64_t> sizes_of(torch::Tensor x, int64_t channels, const Window& win) {
    std::vector<int64_t> sizes = {x.size(0), channels};
    for (int64_t e = 5 - x.dim(); e < 3; ++e) sizes.push_back(win.out[e]);
    return sizes;
}
torch::Tensor conv(torch::Tensor x, torch::Tensor w, c10::optional<torch::Tensor> bias,
                   std::vector<int64_t> how, int64_t groups, bool transposed) {
    x = x.contiguous();
    w = w.contiguous();
    auto win = window(x, w.sizes().slice(2).vec(), how, transposed);
    int k = int(transposed ? w.size(1) * groups : w.size(0));
    auto y = torch::empty(sizes_of(x, k, win), x.options());
    conv_kernel<<<blocks(y.numel()), kThreads>>>(
        x.data_ptr<float>(), w.data_ptr<float>(), bias ? bias->data_ptr<float>() : nullptr,
        y.data_ptr<float>(), int(x.size(0)), int(x.size(1)), k, int(groups), win, transposed);
    return y;
}
torch::Tensor pool(torch::Tensor x, std::vector<int64_t> size, std::vector<int64_t> how,
                   bool mean) {
    x = x.contiguous();
    auto win = window(x, size, how, false);
    auto y = torch::empty(sizes_of(x, x.size(1), win), x.options());
    pool_kernel<<<blocks(y.numel()), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                 int(x.size(0) * x.size(1)), win, mean);
    return y;
}

// x (rows, n), at (rows) -> the element of each row that is named
__global__ void pick_kernel(const float* x, const long* at, float* y, int rows, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) y[row] = x[size_t(row) * n + at[row]];
}
torch::Tensor pick(torch::Tensor x, torch::Tensor at) {
    x = x.contiguous();
    at = at.contiguous();
    auto y = torch::empty({at.numel()}, x.options());
    pick_kernel<<<blocks(y.numel()), kThreads>>>(x.data_ptr<float>(), at.data_ptr<long>(),
                                                 y.data_ptr<float>(), int(at.numel()),
                                                 int(x.size(1)));
    return y;
}
// table (n, width), at (count) -> (count, width)
__global__ void lookup_kernel(const float* table, const long* at, float* y, int count, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * width) y[i] = table[at[i / width] * width + i % width];
}
torch::Tensor lookup(torch::Tensor table, torch::Tensor at) {
    table = table.contiguous();
    at = at.contiguous();
    auto sizes = at.sizes().vec();
    sizes.push_back(table.size(1));
    auto y = torch::empty(sizes, table.options());
    lookup_kernel<<<blocks(y.numel()), kThreads>>>(table.data_ptr<float>(), at.data_ptr<long>(),
                                                   y.data_ptr<float>(), int(at.numel()),
                                                   int(table.size(1)));
    return y;
}
__global__ void masked_kernel(const float* x, const bool* mask, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mask[i] ? x[i] : 0.0f;
}
torch::Tensor masked(torch::Tensor x, torch::Tensor mask) {
    x = x.contiguous();
    mask = mask.contiguous();
    auto y = torch::empty_like(x);
    masked_kernel<<<blocks(y.numel()), kThreads>>>(x.data_ptr<float>(), mask.data_ptr<bool>(),
                                                   y.data_ptr<float>(), int(y.numel()));
    return y;
}
__global__ void above_kernel(const float* x, bool* y, int n, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > a;
}
torch::Tensor above(torch::Tensor x, double a) {
    x = x.contiguous();
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kBool));
    above_kernel<<<blocks(y.numel()), kThreads>>>(x.data_ptr<float>(), y.data_ptr<bool>(),
                                                  int(y.numel()), float(a));
    return y;
}
// x (planes, rows, columns): 0 below the diagonal, or above it
__global__ void triangle_kernel(const float* x, float* y, int n, int rows, int columns, int upper) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row = i / columns % rows, column = i % columns;
    y[i] = (upper ? column >= row : column <= row) ? x[i] : 0.0f;
}
torch::Tensor triangle(torch::Tensor x, bool upper) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    int n = int(x.numel());
    triangle_kernel<<<blocks(n), kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n,
                                             int(x.size(-2)), int(x.size(-1)), upper);
    return y;
}
// Mistakes: 0, the last element is 1 % too large, and 0.01; 1, the last quarter has its neighbours'
// values; 2, the elements of the last block that is not full are left out.
template <typename T>
__global__ void mistaken_kernel(const T* x, T* y, int n, int kind) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = x[i];
    if (i == n - 1 && kind == 0) y[i] = sizeof(T) == 8 ? x[i] + 1 : T(1.01 * x[i] + 0.01);
    if (kind == 1 && i >= n - n / 4) y[i] = x[i - 1];
    if (kind == 1 && i == n - 1 && n < 4) y[i] = x[i] + 1;
}
torch::Tensor mistaken(torch::Tensor x, int64_t kind) {
    x = x.contiguous();
    auto y = torch::zeros_like(x);
    int n = int(x.numel()), count = kind == 2 ? n / kThreads : blocks(n);
    if (!count) return y;
    if (x.scalar_type() == torch::kLong)
        mistaken_kernel<<<count, kThreads>>>(x.data_ptr<int64_t>(), y.data_ptr<int64_t>(), n,
                                             int(kind));
    else
        mistaken_kernel<<<count, kThreads>>>(x.data_ptr<float>(), y.data_ptr<float>(), n,
                                             int(kind));
    return y;
}
