#include "waits.h"

#include "block.h"
#include "report.h"
#include "trace.h"

namespace emu {

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

}  // namespace emu
