// Streams and events, and what they order.
#include "streams.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "../include/emulator/api.h"
#include "device.h"
#include "hazards.h"
#include "heap.h"
#include "memory.h"
#include "pinned_copies.h"
#include "watch.h"

struct EmuStream {
    unsigned flags;
    int priority;
    uint32_t number;
};
struct EmuEvent {
    std::chrono::steady_clock::time_point time;
    bool recorded, timed;
    emu::StreamClock over;  // once it has come
};

namespace emu {

bool several_streams = false;

namespace {

constexpr uint32_t kLegacy = 0, kPerThread = 1;

struct Stream {
    bool blocking = true;  // waits for the default stream, which waits for it
    uint32_t issued = 0;
    StreamClock over;  // before its next piece of work
};

std::recursive_mutex mutex;
std::vector<Stream> streams(2);
std::vector<Work> works(1);
uint32_t current = 0;  // the running launch, or copy
StreamClock host;      // what it has waited for
std::map<const Allocation*, std::unique_ptr<Shadow<Users>>>& users =
    *new std::map<const Allocation*, std::unique_ptr<Shadow<Users>>>;

// Lists of readers, each once, since many words have the same; the first is empty.
using Readers = std::vector<Users::User>;
std::map<Readers, uint32_t> places{{{}, 0}};
std::vector<const Readers*> lists{&places.begin()->first};

bool is_made(cudaStream_t stream) {  // by the program: neither of the default ones
    return stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
}
uint32_t number_of(cudaStream_t stream) {
    return is_made(stream) ? stream->number : stream == cudaStreamPerThread ? kPerThread : kLegacy;
}

void join(StreamClock& clock, const StreamClock& other) {
    if (clock.size() < other.size()) clock.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}
bool is_over(const Work& work, const StreamClock& clock) {
    return work.stream < clock.size() && clock[work.stream] >= work.number;
}

// All that is over when a stream has come to the end of what it has been given.
StreamClock end_of(uint32_t number) {
    StreamClock over = streams[number].over;
    if (number == kLegacy) {
        for (const Stream& other : streams)
            if (other.blocking) join(over, other.over);
    } else if (streams[number].blocking) {
        join(over, streams[kLegacy].over);
    }
    return over;
}

void begin_work(uint32_t number, const char* name) {
    Stream& stream = streams[number];
    stream.over = end_of(number);
    join(stream.over, host);
    works.push_back(Work{number, ++stream.issued, stream.over, name});
    current = uint32_t(works.size() - 1);
    if (stream.over.size() <= number) stream.over.resize(number + 1);
    stream.over[number] = stream.issued;
}

// The list after a use: who comes after that comes after all that is over before it.
uint32_t readers_after(uint32_t before, const StreamClock& over, const Users::User* reader) {
    Readers left;
    for (const Users::User& each : *lists[before]) {
        if (reader && each.work == reader->work) return before;
        if (!is_over(works[each.work], over)) left.push_back(each);
    }
    if (reader) left.push_back(*reader);
    const auto [place, fresh] = places.emplace(std::move(left), uint32_t(lists.size()));
    if (fresh) lists.push_back(&place->first);
    return place->second;
}

Unordered use(const Allocation& whole, size_t offset, size_t size, Kind kind,
              const StreamClock& over, Users::User me) {
    auto& shadow = users[&whole];
    if (!shadow) shadow = std::make_unique<Shadow<Users>>(whole.bytes);
    Unordered found;
    auto against = [&](const Users::User& user) {
        const Work& work = works[user.work];
        if (!user.work || user.work == me.work || is_over(work, over) || found.work) return;
        found = Unordered{&work, user.kind, user.pc};
    };
    // Words side by side mostly have the same readers.
    uint32_t before = 0, after = 0;
    const Users::User* const reader = reads(kind) && me.work ? &me : nullptr;
    bool known = false;
    shadow->each(offset, size, [&](Users& of_word, size_t, unsigned) {
        against(of_word.writer);
        if (writes(kind)) {
            for (const Users::User& each : *lists[of_word.readers]) against(each);
            of_word.writer = me;
        }
        if (!writes(kind) && !reader) return;
        if (!known || of_word.readers != before) {
            known = true;
            before = of_word.readers;
            after = readers_after(before, over, reader);
        }
        of_word.readers = after;
    });
    return found;
}

// What the caller's work may still write, from the first other stream on.
struct Callers {
    const Allocation* whole;
    size_t offset, bytes;
    uint32_t work;
};
std::vector<Callers> callers;

void note_callers() {
    for (const Callers& c : callers)
        use(*c.whole, c.offset, c.bytes, kStore, works[c.work].over, {c.work, kStore, 0});
    callers.clear();
}

}  // namespace

void begin_launch_in(cudaStream_t stream, const char* kernel) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (!watching()) return;
    several_streams |= stream != nullptr;
    if (!several_streams) return;
    for (auto it = users.begin(); it != users.end();)
        it = it->first->freed ? users.erase(it) : std::next(it);
    note_callers();
    begin_work(number_of(stream), kernel);
}

Unordered use_in_stream(const Allocation& whole, size_t offset, size_t size, Kind kind,
                        uint64_t pc) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    return use(whole, offset, size, kind, works[current].over, {current, kind, pc});
}

Unordered use_by_host(const Allocation& whole, size_t offset, size_t size, Kind kind) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (!users.count(&whole)) return {};
    // What the host did is over before all that it begins.
    return use(whole, offset, size, kind, host, {0, kind, 0});
}

void copy_in_stream(cudaStream_t stream, const char* function, void* to, const void* from,
                    size_t bytes, bool waits, const void* pc) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (!watching()) return;
    several_streams |= stream != nullptr;
    if (!several_streams) {
        if (waits) join(host, end_of(kLegacy));
        return;
    }
    note_callers();
    begin_work(number_of(stream), function);
    auto touch = [&](const void* address, Kind kind) {
        Allocation* a = address ? heap().find(address) : nullptr;
        if (!a) return;
        const Allocation* whole = a->arena ? a->arena : a;
        const size_t offset = size_t(static_cast<const char*>(address) - whole->first);
        const Unordered other =
            use(*whole, offset, bytes, kind, works[current].over, {current, kind, 0});
        if (other.work) tell_unordered_copy(*a, address, kind, other, pc);
    };
    touch(from, kLoad);
    touch(to, kStore);
    if (waits) join(host, end_of(number_of(stream)));
}

void wait_for_all() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    for (const Stream& stream : streams) join(host, stream.over);
}

void forget_streams() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    several_streams = streams.size() > 2;
    works.resize(1);
    users.clear();
    callers.clear();
    places.erase(std::next(places.begin()), places.end());
    lists.resize(1);
    wait_for_all();
}

}  // namespace emu

using namespace emu;

extern "C" {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = kLeastPriority;
    if (greatest) *greatest = kGreatestPriority;
    return result(cudaSuccess);
}
cudaError_t emu_stream_create(cudaStream_t* stream, unsigned flags, int priority) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    several_streams = true;
    Stream made;
    made.blocking = !(flags & cudaStreamNonBlocking);
    streams.push_back(made);
    priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *stream = new EmuStream{flags, priority, uint32_t(streams.size() - 1)};
    ++objects;
    return result(cudaSuccess);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    *flags = is_made(stream) ? stream->flags : 0;
    return result(cudaSuccess);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    *priority = is_made(stream) ? stream->priority : 0;
    return result(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!is_made(stream)) return result(cudaErrorInvalidResourceHandle);
    delete stream;  // what it has been given goes on
    --objects;
    return result(cudaSuccess);
}
// Memory of a call in which the default stream may still be at work when that begins.
void emu_begin_of_call(const void* first, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    Allocation* a = heap().find(first);
    if (!a || !bytes) return;
    begin_work(kLegacy, "the caller's work");
    callers.push_back({a, size_t(static_cast<const char*>(first) - a->first), bytes, current});
}
// Tells of work that neither the host nor the default stream has waited for.
void emu_end_of_call() {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    StreamClock over = end_of(kLegacy);
    join(over, host);
    for (size_t i = works.size() - 1; i; --i)
        if (!is_over(works[i], over)) return tell_left(works[i].name);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    for_the_host("cudaStreamSynchronize", __builtin_return_address(0));
    host_has_waited();
    std::lock_guard<std::recursive_mutex> lock(mutex);
    join(host, end_of(number_of(stream)));
    return device_fault();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    std::lock_guard<std::recursive_mutex> lock(mutex);
    join(streams[number_of(stream)].over, event->over);
    return result(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    *event = new EmuEvent{{}, false, !(flags & cudaEventDisableTiming), {}};
    ++objects;
    return result(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    delete event;
    --objects;
    return result(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    std::lock_guard<std::recursive_mutex> lock(mutex);
    event->time = std::chrono::steady_clock::now();
    event->recorded = true;
    event->over = end_of(number_of(stream));
    return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (!event) return result(cudaErrorInvalidResourceHandle);
    host_has_waited();
    std::lock_guard<std::recursive_mutex> lock(mutex);
    join(host, event->over);
    return device_fault();
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    if (!start || !stop || !start->recorded || !stop->recorded || !start->timed || !stop->timed)
        return result(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
    return result(cudaSuccess);
}

}  // extern "C"
