// The time limit: a thread of its own waits for the deadline, has whoever runs then say where it
// is, and ends the process. Nothing here depends on what runs. A busy machine is not the kernel's
// fault: one that had a core for less than its time goes on, to a bound; and while the whole
// machine stands still, as a virtual one does, time does not pass.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "block.h"
#include "faults.h"
#include "pool.h"
#include "report.h"

namespace emu {
namespace {

constexpr int kExitCode = 124;  // as of timeout(1)

constexpr double kPatience = 4;  // time limits, at most, for a kernel that is given no core
constexpr double kNearly = 0.9;  // of a limit: who had so much of a core's time had it all
constexpr double kAsleep = 0.5;  // seconds after which host code that got no further sleeps
constexpr double kBreak = 0.2;   // seconds, at most, that count of those between two looks
constexpr int kAnswer = 300;     // times 10 ms: who is late and is given no core answers later

std::atomic<double> limit{0};     // seconds
std::atomic<double> passed{0};    // seconds that counted until the last look
std::atomic<double> deadline{0};  // in those seconds; 0: none
std::atomic<double> had{0};       // seconds that this process had on cores when a limit began
std::atomic<bool> answering{false}, reported{false};
std::atomic<int> looks{60};  // at whoever is late, until it is seen in its kernel's own code
pthread_t main_thread;

double now(clockid_t clock = CLOCK_MONOTONIC) {
    timespec t;
    clock_gettime(clock, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// Seconds that the main thread has had on cores.
double main_had() {
    clockid_t clock;
    return pthread_getcpuclockid(main_thread, &clock) == 0 ? now(clock) : 0;
}

// Whether it has no core, or no page of its code, though it would run.
bool main_waits() {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", int(getpid()));  // the first thread's
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[std::max<ssize_t>(n, 0)] = 0;
    const char* name_end = strrchr(text, ')');
    return name_end && (name_end[2] == 'R' || name_end[2] == 'D');
}

// Whether what runs has been kept from running.
bool starved(double late) {
    return late < (kPatience - 1) * limit && now(CLOCK_PROCESS_CPUTIME_ID) - had < kNearly * limit;
}

void on_timeout(int, siginfo_t*, void* context) {
    if (answering.exchange(true)) return;  // asked again, on the way to the answer
    const Launch* launch = core() ? core()->launch : nullptr;
    // In its own code it holds no lock of ours that the report would wait for; between two turns
    // its line is that of the last one, at best.
    const bool own = launch && core()->current && launch->code.holds(program_counter(context));
    if (launch && !own && looks-- > 0) {
        answering = false;
        return;
    }
    Where where = interrupted(context);
    // While a block is made ready, nobody runs: the one before it may have been left somewhere.
    if (launch && !core()->current)
        where = left_at().kernel == launch->kernel ? left_at() : Where{launch->kernel};
    report(hazard::timeout, where,
           launch ? "the kernel did not end within its time limit; it was here when it was stopped"
                  : "the host code did not end within its time limit");
    reported = true;
    for (;;) pause();  // the watchdog ends the process
}

void end_at_deadline() {
    pthread_setname_np(pthread_self(), "emulator");
    double host = 0, host_ran = 0;
    for (double looked = now();;) {
        usleep(20000);
        const double since = now() - looked;
        looked += since;
        passed = passed + std::min(since, kBreak);
        if (const double ran = main_had(); ran > host) host = ran, host_ran = passed;
        const double until = deadline;
        if (until == 0 || passed < until) continue;
        pthread_t late = main_thread;
        const bool wants = find_busy_thread(&late) || passed - host_ran < kAsleep || main_waits();
        if (wants && starved(passed - until)) continue;
        for (int i = 0; i < (answering ? 2 : 1) * kAnswer && !reported; ++i) {
            if (i == kAnswer / 2) looks = 0;  // a line at best is more than none
            pthread_kill(late, kAsks);
            usleep(10000);
            if (!answering) find_busy_thread(&late);
        }
        if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);  // what the kernel printed
        _exit(kExitCode);
    }
}

void start() {
    main_thread = pthread_self();
    use_signal_stack();
    install_fault_handlers();
    handle(kAsks, on_timeout);
    start_thread(end_at_deadline);
}

}  // namespace
}  // namespace emu

// From now on, anew with each call; 0: none.
extern "C" void emu_set_time_limit(double seconds) {
    using namespace emu;
    limit = seconds;
    had = now(CLOCK_PROCESS_CPUTIME_ID);
    deadline = seconds > 0 ? passed + seconds : 0;
    if (seconds <= 0) return;
    static const bool once = (start(), true);
    (void)once;
}
