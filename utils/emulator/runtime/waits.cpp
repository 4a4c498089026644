// Who waits where, read from the fibres as they stand.
#include "waits.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "../include/emulator/errors.h"
#include "block.h"
#include "block_work.h"
#include "collectives.h"
#include "report.h"
#include "trace.h"

namespace emu {

const char* awaited(const Fibre& f) {
    if (f.waits == Waits::kBarrier) return "__syncthreads";
    if (f.waits == Waits::kGrid) return "grid.sync";
    if (f.waits == Waits::kArrivals || f.waits == Waits::kNamedBarrier)
        return "a barrier of some threads";
    if (f.waits == Waits::kMemoryBarrier) return "barrier_wait";
    if (f.waits == Waits::kCluster) return "cluster_sync";
    if (f.waits == Waits::kWarpgroup) return "wgmma_wait, for the other warps of its four";
    return f.waits == Waits::kCollective ? collective_name(f.kind) : "";
}

// Neighbours that wait at one place are told as one; line 0 is of those that have left the kernel.
void report_waits(const Core& core) {
    if (!tracing()) return;
    Json json;
    json.text("event", "waits");
    json.begin_list("waits");
    const int threads = core.launch->threads;
    for (int first = 0, end; first < threads; first = end) {
        const Fibre& f = core.fibre(first);
        const bool waits = f.waits != Waits::kNothing;
        auto same = [&](const Fibre& g) {
            return g.waits == f.waits &&
                   (!waits || (g.site.line == f.site.line && g.kind == f.kind));
        };
        for (end = first + 1; end < threads && same(core.fibre(end));) ++end;
        json.begin_object();
        json.number("threads", uint64_t(end - first));
        json.number("line", waits ? uint64_t(f.site.line) : 0);
        json.text("for", awaited(f));
        json.end_object();
    }
    json.end_list();
    json.end();
}

// "line 24", with the file's own name where several are spoken of.
static std::string line_of(const EmuSite& site, bool named) {
    std::string text = "line " + std::to_string(site.line);
    if (!named || !site.file) return text;
    const char* slash = strrchr(site.file, '/');
    return text + " of " + (slash ? slash + 1 : site.file);
}

static bool apart(const EmuSite& a, const EmuSite& b) {
    return a.file && b.file && strcmp(a.file, b.file);
}

std::string met_before(const Meeting& met, bool named) {
    if (!met.here.file) return "";
    named |= apart(met.here, met.there);
    return std::string("; before, some lanes called ") + collective_name(met.kind) + " at " +
           line_of(met.here, named) + " and others at " + line_of(met.there, named) +
           ", which passed as one call";
}

namespace {

struct Crowd {  // threads that wait for one thing at one line
    int first, threads;
};
constexpr int kMostCrowds = 4;  // that are told of

int find_crowds(const Core& core, Crowd* crowds) {
    int count = 0;
    for (int i = 0; i < core.launch->threads; ++i) {
        if (!core.is_live(i)) continue;
        const Fibre& f = core.fibre(i);
        auto holds = [&](const Crowd& crowd) {
            const Fibre& g = core.fibre(crowd.first);
            return g.waits == f.waits && g.site.line == f.site.line;
        };
        int k = 0;
        while (k < count && !holds(crowds[k])) ++k;
        if (k < count) ++crowds[k].threads;
        else if (count < kMostCrowds) crowds[count++] = Crowd{i, 1};
    }
    return count;
}

class Text {  // bounded: what does not fit is left out
   public:
    void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        if (used_ >= int(sizeof text_)) return;
        va_list arguments;
        va_start(arguments, format);
        used_ += vsnprintf(text_ + used_, sizeof text_ - size_t(used_), format, arguments);
        va_end(arguments);
    }
    const char* text() const { return text_; }

   private:
    char text_[1024] = "";
    int used_ = 0;
};

void describe(const Core& core, const Crowd& crowd, bool named, Text& text) {
    const Fibre& f = core.fibre(crowd.first);
    const bool one = crowd.threads == 1;
    text.add("%d thread%s from (%u, %u, %u) wait%s at %s, %s", crowd.threads, one ? "" : "s",
             f.index.x, f.index.y, f.index.z, one ? "s" : "", line_of(f.site, named).c_str(),
             awaited(f));
}

// Which lane a collective lacks. False where all have come, and then want different things.
bool describe_missing(const Core& core, const Crowd& crowd, Text& text) {
    const Fibre& f = core.fibre(crowd.first);
    const Warp& warp = core.warp(crowd.first / 32);
    const unsigned missing = f.mask & warp.live & ~warp.waiting;
    text.add(" of lanes 0x%08x, ", f.mask);
    if (missing) text.add("and lane %d never comes", __builtin_ctz(missing));
    else text.add("but lanes disagree about mask or operation");
    return missing != 0;
}

// What a barrier that counts still waits for. False where it is none.
bool describe_barrier(Core& core, const Fibre& f, Text& text) {
    if (f.waits == Waits::kNamedBarrier) {
        const NamedBarrier& b = *static_cast<const NamedBarrier*>(f.barrier);
        text.add(": %d of its %d threads have come", b.come, b.threads);
        return true;
    }
    if (f.waits != Waits::kMemoryBarrier) return false;
    const MemoryBarrier& b = core.work().barriers[f.barrier];
    text.add(": its phase has parity %u, ", b.phase & 1);
    if (b.pending) text.add("%d of %d arrivals are missing", b.pending, b.expected);
    if (b.pending && b.bytes > 0) text.add(", ");
    if (b.bytes > 0) text.add("%lld of the announced bytes are missing", (long long)b.bytes);
    return true;
}

// Whether threads wait in several files, or have met in another one.
bool in_several_files(const Core& core, const Crowd* crowds, int count) {
    const EmuSite& first = core.fibre(crowds[0].first).site;
    for (int k = 0; k < count; ++k) {
        const Fibre& f = core.fibre(crowds[k].first);
        if (apart(first, f.site)) return true;
        const Meeting& met = core.meeting(crowds[k].first / 32);
        if (f.waits == Waits::kCollective && (apart(first, met.here) || apart(first, met.there)))
            return true;
    }
    return false;
}

// How likely a barrier that counts is where it went wrong: others wait for who waits there.
int surely_at_fault(Core& core, const Crowd& crowd) {
    const Fibre& f = core.fibre(crowd.first);
    if (f.waits != Waits::kMemoryBarrier) return 0;
    const MemoryBarrier& b = core.work().barriers[f.barrier];
    if (!b.pending) return 2;  // bytes are missing
    return b.pending < b.expected;
}

}  // namespace

void report_deadlock(Core& core) {
    Crowd crowds[kMostCrowds];
    const int count = find_crowds(core, crowds);
    Text text;
    int shown = 0;  // whose place is the message's: a collective's rather than a barrier's
    bool disagree = false, counts = false;
    const bool named = in_several_files(core, crowds, count);
    for (int k = 0; k < count; ++k) {
        const bool collective = core.fibre(crowds[k].first).waits == Waits::kCollective;
        if (collective && core.fibre(crowds[shown].first).waits == Waits::kBarrier) shown = k;
        if (surely_at_fault(core, crowds[k]) > surely_at_fault(core, crowds[shown])) shown = k;
        if (k) text.add("; ");
        describe(core, crowds[k], named, text);
        if (collective && !describe_missing(core, crowds[k], text)) disagree = true;
        counts |= describe_barrier(core, core.fibre(crowds[k].first), text);
    }
    const Fibre& f = core.fibre(crowds[shown].first);
    Where where{core.launch->kernel, core.block, f.index, f.site, f.pc};
    const Meeting& met = core.meeting(crowds[shown].first / 32);
    if (count > 1) {
        const Fibre& other = core.fibre(crowds[shown ? 0 : 1].first);
        where.other_site = other.site;
        where.other_thread = other.index;
        where.other_pc = other.pc;
    }
    if (f.waits == Waits::kCollective && met.here.file) {
        text.add("%s", met_before(met, named).c_str());
        const bool here = met.here.line == f.site.line;
        where.other_site = here ? met.there : met.here;
        where.other_pc = here ? met.pc_there : met.pc_here;
    }
    report_waits(core);
    const bool broken = f.waits == Waits::kWarpgroup;
    report(disagree ? hazard::invalid_mask
           : broken ? hazard::broken_warpgroup
           : counts ? hazard::deadlock_of_counts
                    : hazard::deadlock,
           where, text.text());
    core.abandon(cudaErrorLaunchFailure);
}

}  // namespace emu
