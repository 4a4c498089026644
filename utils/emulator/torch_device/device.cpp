// PyTorch's device "cuda" where there is no card: tensors whose memory is the emulator's, out of
// reach of host code, and every operation on them by way of one function.
//
// That function takes PyTorch's own operation for the CPU to the same memory, where the operation
// is allowed. While a judged model's forward runs, those are products, sums, copies and views.
// There is no other way to these values: a library that calls PyTorch's CPU code itself, or loops
// over data_ptr(), ends its process as it would on a card.
#include <Python.h>

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

extern "C" {
int emu_malloc(void** pointer, size_t bytes, const char* name, size_t element, size_t shift);
int cudaFree(void* pointer);
void emu_mark_written(const void* first, size_t bytes);
void emu_open_memory(int change);
size_t emu_room(const void* address);
void emu_rehearse(int on);
}

namespace at {

struct CUDAHooks : CUDAHooksInterface {  // what the rest of PyTorch asks a card's library
    explicit CUDAHooks(CUDAHooksArgs) {}
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return 1; }
    c10::DeviceIndex current_device() const override { return 0; }
    c10::DeviceIndex getCurrentDevice() const override { return 0; }
    void setCurrentDevice(c10::DeviceIndex) const override {}
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
    bool isPinnedPtr(const void*) const override { return false; }
    c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
    Device getDeviceFromPtr(void*) const override { return {c10::DeviceType::CUDA, 0}; }
    void deviceSynchronize(c10::DeviceIndex) const override {}
};
REGISTER_CUDA_HOOKS(CUDAHooks);

}  // namespace at

namespace {

using c10::Device;
using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::Stream;
using torch::jit::Stack;

const Device kCard(DeviceType::CUDA, 0);

// --- one card, one stream: all is done when a call returns

struct Guard : c10::impl::DeviceGuardImplInterface {
    Guard() = default;
    explicit Guard(DeviceType) {}
    DeviceType type() const override { return DeviceType::CUDA; }
    Device exchangeDevice(Device) const override { return kCard; }
    Device getDevice() const override { return kCard; }
    void setDevice(Device) const override {}
    void uncheckedSetDevice(Device) const noexcept override {}
    Stream getStream(Device) const noexcept override { return Stream(Stream::DEFAULT, kCard); }
    Stream getNewStream(Device, int = 0) const override { return Stream(Stream::DEFAULT, kCard); }
    Stream exchangeStream(Stream) const noexcept override { return Stream(Stream::DEFAULT, kCard); }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void**, const Stream&, const c10::DeviceIndex,
                const c10::EventFlag) const override {}
    void block(void*, const Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
    void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
    bool queryStream(const Stream&) const override { return true; }
    void synchronizeStream(const Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// --- memory

struct Open {  // to the code that may reach it
    Open() { emu_open_memory(1); }
    ~Open() { emu_open_memory(-1); }
};

constexpr int kPoison = 0x7f;  // of every byte of fresh memory: a float of 3.39e38

struct Memory final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        void* data = nullptr;
        TORCH_CHECK_WITH(OutOfMemoryError, !emu_malloc(&data, bytes, "tensor", 4, 0),
                         "CUDA out of memory");
        Open open;
        if (data) std::memset(data, kPoison, bytes);
        return {data, data, [](void* p) { cudaFree(p); }, kCard};
    }
    c10::DeleterFnPtr raw_deleter() const override {
        return [](void* p) { cudaFree(p); };
    }
    void copy_data(void* to, const void* from, size_t bytes) const override {
        Open open;
        default_copy_data(to, from, bytes);
    }
};
Memory memory;

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> type,
                 c10::optional<at::Layout>, c10::optional<Device>, c10::optional<bool>,
                 c10::optional<at::MemoryFormat> format) {
    const auto kind = type.value_or(at::typeMetaToScalarType(c10::get_default_dtype()));
    return at::detail::empty_generic(sizes, &memory, DispatchKeySet(DispatchKey::CUDA), kind,
                                     format);
}
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                         c10::optional<Device>, c10::optional<bool>) {
    const auto kind = type.value_or(at::typeMetaToScalarType(c10::get_default_dtype()));
    return at::detail::empty_strided_generic(sizes, strides, &memory,
                                             DispatchKeySet(DispatchKey::CUDA), kind);
}

// --- what PyTorch may do

enum Phase { kAnything, kForward, kBackward };
Phase phase = kAnything;

// What a judged forward may do, by what the task's reference does; see judge/models/work.py.
using Names = std::unordered_set<std::string>;
const Names kMoving = {
    "copy_",  "fill_", "zero_",         "cat",     "flip", "roll",          "index_select", "eye",
    "arange", "empty", "empty_strided", "resize_", "set_", "record_stream", "_to_copy",     "clone",
};
const Names kSums = {"add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "neg", "neg_"};
Names products = {"mm", "addmm", "addmm_", "bmm", "baddbmm", "addbmm",
                  "mv", "addmv", "dot",    "ger", "addr"};
long most_products = -1, most_sums = -1;      // -1: any number
constexpr long kSingles = 8;                  // operations on single numbers
bool allowed = false;                         // it has been said what is
long done_products, done_sums, done_singles;  // in this forward

// What would bring values to the host.
bool tells_the_host(const std::string& name) {
    static const std::unordered_set<std::string> telling = {
        "_local_scalar_dense",
        "equal",
        "is_nonzero",
        "nonzero",
        "masked_select",
        "unique_dim",
        "_unique2",
        "unique_consecutive",
        "allclose",
        "_assert_async",
        "bincount",
        "histc",
        "repeat_interleave",
    };
    return telling.count(name);
}

bool is_whole(const at::Tensor& t) { return !t.is_floating_point() && !t.is_complex(); }

// Applies a function to all tensors of a value.
void each(const IValue& value, const std::function<void(const at::Tensor&)>& look) {
    if (value.isTensor()) return look(value.toTensor());
    if (value.isTensorList())
        for (const at::Tensor& one : value.toTensorVector()) look(one);
}

std::string plain_name(const c10::OperatorHandle& op) {
    const std::string& whole = op.operator_name().name;
    return whole.substr(whole.find("::") + 2);
}

// Both true: the result is a view of an argument.
bool is_view(const c10::FunctionSchema& schema) {
    if (schema.returns().empty()) return false;
    for (const auto& one : schema.returns())
        if (!one.alias_info() || one.alias_info()->isWrite()) return false;
    return true;
}

// --- the one function

at::Tensor on_cpu(const at::Tensor& tensor) {
    const auto& storage = tensor.storage();
    TORCH_CHECK(storage.nbytes() <= emu_room(storage.data()),
                "an illegal memory access was encountered: a tensor's memory is not the card's");
    c10::Storage same(c10::Storage::use_byte_size_t(), storage.nbytes(),
                      at::DataPtr(const_cast<void*>(storage.data()), Device(DeviceType::CPU)));
    auto made = at::detail::make_tensor<c10::TensorImpl>(
        std::move(same), DispatchKeySet(DispatchKey::CPU), tensor.dtype());
    auto* impl = made.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) made._set_conj(true);
    if (tensor.is_neg()) made._set_neg(true);
    return made;
}

void mark_written(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return;
    emu_mark_written(tensor.storage().data(), tensor.storage().nbytes());
}

struct Stand {  // the tensors of the CPU that stand for a call's
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs;  // theirs, ours

    at::Tensor in(const at::Tensor& tensor) {
        if (!tensor.defined() || !tensor.is_cuda()) return tensor;
        const bool none = !tensor.storage().nbytes();  // one that an operation makes as large
        pairs.emplace_back(tensor, none ? at::detail::empty_cpu(tensor.sizes(), tensor.options())
                                        : on_cpu(tensor));
        return pairs.back().second;
    }
    // Gives those their memory that an operation has made larger.
    void grow() {
        for (auto& [theirs, ours] : pairs)
            if (!theirs.numel() && ours.numel()) {
                theirs.resize_(ours.sizes());
                on_cpu(theirs).copy_(ours);
            }
    }
    // A new tensor's values, where no argument is it.
    at::Tensor out(const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        for (auto& [theirs, ours] : pairs)
            if (ours.is_same(tensor)) return theirs;
        auto made =
            empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type(), {}, {}, {});
        if (tensor.numel()) on_cpu(made).copy_(tensor);
        mark_written(made);
        return made;
    }
};

IValue moved(const IValue& value, const std::function<at::Tensor(const at::Tensor&)>& move) {
    if (value.isTensor()) return move(value.toTensor());
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& one : value.toTensorVector()) list.push_back(move(one));
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<c10::optional<at::Tensor>> list;
        for (const c10::optional<at::Tensor>& one : value.toOptionalTensorVector())
            list.push_back(one ? c10::optional<at::Tensor>(move(*one)) : c10::nullopt);
        return list;
    }
    if (value.isDevice()) return Device(DeviceType::CPU);
    return value;
}

std::string refused;  // what was asked for first and is not allowed

[[noreturn]] void refuse(const std::string& name, const char* why) {
    if (refused.empty()) refused = name + why;
    TORCH_CHECK(false, "switched off: torch's own ", name, why);
}

// A product of anything but the two: `alpha` or `beta` do a multiple's work.
bool is_scaled(const c10::FunctionSchema& schema, const Stack& stack, size_t first) {
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        const std::string& name = schema.arguments()[i].name();
        if (name != "alpha" && name != "beta") continue;
        if (stack[first + i].isScalar() && stack[first + i].toScalar().toDouble() != 1) return true;
    }
    return false;
}

// Numbers become whole: that is a step, of which one makes a comparison.
bool makes_whole(const std::string& name, const Stack& stack, size_t first) {
    if (name == "copy_") {
        const at::Tensor &to = stack[first].toTensor(), &from = stack[first + 1].toTensor();
        return is_whole(to) && !is_whole(from) && from.numel() > 1;
    }
    if (name != "_to_copy") return false;
    const at::Tensor& from = stack[first].toTensor();
    const IValue& type = stack[first + 1];
    if (from.numel() <= 1 || is_whole(from) || type.isNone()) return false;
    const auto to = type.toScalarType();
    return !c10::isFloatingType(to) && !c10::isComplexType(to);
}

// Ends a judged forward that asks for what is the task's own work.
void require_allowed(const std::string& name, const c10::FunctionSchema& schema, const Stack& stack,
                     size_t first) {
    if (schema.arguments().size() && schema.arguments().back().is_out())
        refuse(name, " into a tensor");
    if (kMoving.count(name)) {
        if (makes_whole(name, stack, first)) refuse(name, " to whole numbers");
        return;
    }
    int64_t most = 0;
    bool whole = false;
    for (size_t i = first; i < stack.size(); ++i)
        each(stack[i], [&](const at::Tensor& t) {
            if (!t.defined()) return;
            most = std::max(most, t.numel());
            whole |= t.is_cuda() && is_whole(t);  // else it is a number of the text
        });
    if (products.count(name)) {
        if (most_products >= 0 && ++done_products > most_products)
            refuse(name, " more often than Model has products");
        if (most_sums == 0 && is_scaled(schema, stack, first)) refuse(name, " of a multiple");
        return;
    }
    if (most <= 1 && kSums.count(name) && ++done_singles <= kSingles) return;
    if (most <= 1 && name == "div" && ++done_singles <= kSingles) return;
    if (!kSums.count(name)) refuse(name, "");
    if (most_sums < 0) return;
    if (whole) refuse(name, " of whole numbers");
    if (++done_sums > most_sums) refuse(name, most_sums ? " so often" : "");
}

void on_card(const c10::OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const auto& schema = op.schema();
    const std::string name = plain_name(op);
    if (name == "record_stream") return torch::jit::drop(stack, schema.arguments().size());
    if (is_view(schema) || name == "set_" || name == "resize_") {
        Open open;
        return op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);
    }
    if (phase == kForward)
        require_allowed(name, schema, *stack, stack->size() - schema.arguments().size());
    if (phase == kForward && tells_the_host(name)) refuse(name, ", which tells the host of values");
    const size_t first = stack->size() - schema.arguments().size();
    if (phase != kAnything && name == "copy_" && (*stack)[first].toTensor().is_cpu())
        refuse(name, " to the host");
    Stand stand;
    std::vector<IValue> written;
    for (size_t i = 0; i < schema.arguments().size(); ++i)
        if (auto* alias = schema.arguments()[i].alias_info(); alias && alias->isWrite())
            written.push_back((*stack)[first + i]);
    for (size_t i = first; i < stack->size(); ++i)
        (*stack)[i] = moved((*stack)[i], [&](const at::Tensor& t) { return stand.in(t); });
    Open open;
    op.callBoxed(stack);
    stand.grow();
    for (const IValue& value : written)
        moved(value, [](const at::Tensor& t) { return mark_written(t), t; });
    const size_t results = stack->size() - schema.returns().size();
    for (size_t i = results; i < stack->size(); ++i)
        (*stack)[i] = moved((*stack)[i], [&](const at::Tensor& t) { return stand.out(t); });
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_card>());
}
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    // Whole, as the CPU has them: a card's have parts that are cuDNN's.
    for (const char* name : {"copy_", "convolution", "convolution_backward"})
        m.impl(name, torch::CppFunction::makeFromBoxedFunction<&on_card>());
    // What has a kernel for the CPU has one for every device, too, in parts or by `out=`.
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& op : dispatcher.getAllOpNames()) {
        if (op.getNamespace() != "aten") continue;
        const auto found = dispatcher.findOp(op);
        if (!found || !found->hasKernelForDispatchKey(DispatchKey::CPU)) continue;
        const std::string name = toString(op);
        if (name != "aten::empty.memory_format" && name != "aten::empty_strided")
            m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_card>());
    }
}

struct Registered {
    Registered() { c10::SetAllocator(DeviceType::CUDA, &memory); }
} registered;

}  // namespace

std::string kept;

extern "C" {

// Calls a function of Python's while PyTorch may do less: 1, in a judged model's forward, and 2, in
// its backward. Nobody inside can end that. `idle`: launches do nothing.
PyObject* device_call(int to, int idle, PyObject* function, PyObject* arguments) {
    const Phase before = phase;
    if (before == kAnything) {
        phase = Phase(to);
        kept.clear();
        refused.clear();
        done_products = done_sums = done_singles = 0;
        emu_rehearse(idle);
    }
    PyObject* result = PyObject_CallObject(function, arguments);
    if (before == kAnything) {
        phase = kAnything;
        emu_rehearse(0);
    }
    return result;
}

// Copies device memory to where a judged model does not get at it; device_kept() gives it out when
// nothing of the model's runs.
void device_keep(const void* from, size_t bytes, int first) {
    Open open;
    if (first) kept.clear();
    if (bytes) kept.append(static_cast<const char*>(from), bytes <= emu_room(from) ? bytes : 0);
}
PyObject* device_kept() {
    if (phase != kAnything) return PyBytes_FromStringAndSize("", 0);
    return PyBytes_FromStringAndSize(kept.data(), Py_ssize_t(kept.size()));
}

// What PyTorch may do in forward, said once: products by name, how many of them, how many sums.
void device_allow(const char* names, long count, long sums) {
    if (allowed) return;
    allowed = true;
    products.clear();
    std::istringstream words(names);
    for (std::string name; words >> name;) products.insert(name);
    most_products = count;
    most_sums = sums;
}

// What a call has asked PyTorch for that it may not do; "" for nothing.
PyObject* device_refused() { return PyUnicode_FromStringAndSize(refused.data(), refused.size()); }

}  // extern "C"
