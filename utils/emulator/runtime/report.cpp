// Events as JSON lines on the descriptor that EMU_REPORT_FD names; errors as text where none does.
#include "report.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace emu {
namespace {

class Line {  // a bounded string: no allocation in a signal handler
   public:
    void add(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        va_list arguments;
        va_start(arguments, format);
        int n = vsnprintf(text_ + used_, sizeof(text_) - used_, format, arguments);
        va_end(arguments);
        if (n > 0)
            used_ = used_ + size_t(n) < sizeof(text_) ? used_ + size_t(n) : sizeof(text_) - 1;
    }
    void quoted(const char* text) {
        add("\"");
        for (; *text; ++text) {
            if (*text == '"' || *text == '\\') add("\\%c", *text);
            else if (*text == '\n') add("\\n");
            else if ((unsigned char)*text >= 32) add("%c", *text);
        }
        add("\"");
    }
    void write_to(int fd) {
        add("\n");
        for (size_t done = 0; done < used_;) {
            ssize_t n = write(fd, text_ + done, used_ - done);
            if (n <= 0) return;
            done += size_t(n);
        }
    }

   private:
    char text_[4096];
    size_t used_ = 0;
};

int report_fd() {
    const char* text = getenv("EMU_REPORT_FD");
    return text && *text ? atoi(text) : -1;
}

struct Code {                      // a code address, as the tool that resolves it wants it
    const char* module = nullptr;  // null: not known
    size_t offset = 0;
};
Code code_at(const void* pc) {
    Dl_info info{};
    if (!pc || !dladdr(pc, &info) || !info.dli_fname) return {};
    return {info.dli_fname, size_t((const char*)pc - (const char*)info.dli_fbase)};
}

void write_json(Line& line, const HazardKind& kind, const Where& where, const char* message) {
    line.add("{\"event\":\"error\",\"kind\":\"%s\",\"variant\":\"%s\",\"message\":", kind.kind,
             kind.variant);
    line.quoted(message);
    if (where.kernel) {
        line.add(",\"kernel\":");
        line.quoted(where.kernel);
        line.add(",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u]", where.block.x, where.block.y,
                 where.block.z, where.thread.x, where.thread.y, where.thread.z);
    }
    if (where.site.file) {
        line.add(",\"file\":");
        line.quoted(where.site.file);
        line.add(",\"line\":%d", where.site.line);
    }
    if (where.other_site.file) {
        line.add(",\"other_file\":");
        line.quoted(where.other_site.file);
        line.add(",\"other_line\":%d,\"other_thread\":[%u,%u,%u]", where.other_site.line,
                 where.other_thread.x, where.other_thread.y, where.other_thread.z);
    }
    if (Code code = code_at(where.pc); code.module) {
        line.add(",\"module\":");
        line.quoted(code.module);
        line.add(",\"offset\":\"0x%zx\"", code.offset);
    }
    if (Code code = code_at(where.other_pc); code.module) {
        line.add(",\"other_module\":");
        line.quoted(code.module);
        line.add(",\"other_offset\":\"0x%zx\"", code.offset);
    }
    line.add("}");
}

void write_text(Line& line, const char* kind, const Where& where, const char* message) {
    line.add("emulator: %s: %s", kind, message);
    if (where.kernel)
        line.add(" (kernel '%s', block (%u, %u, %u), thread (%u, %u, %u))", where.kernel,
                 where.block.x, where.block.y, where.block.z, where.thread.x, where.thread.y,
                 where.thread.z);
    const Code code = code_at(where.pc);
    if (where.site.file) line.add(" at %s:%d", where.site.file, where.site.line);
    else if (code.module) line.add(" at %s+0x%zx", code.module, code.offset);
}

}  // namespace

void report(const HazardKind& kind, const Where& where, const char* message) {
    static const int fd = report_fd();
    Line line;
    if (fd >= 0) write_json(line, kind, where, message);
    else write_text(line, kind.kind, where, message);
    line.write_to(fd >= 0 ? fd : 2);
}

void Json::quoted(const char* text) {
    text_ += '"';
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\') (text_ += '\\') += *text;
        else if (*text == '\n') text_ += "\\n";
        else if ((unsigned char)*text >= 32) text_ += *text;
    }
    text_ += '"';
}
void Json::name(const char* prefix, const char* name) {
    if (text_.back() != '{' && text_.back() != '[') text_ += ',';
    quoted((std::string(prefix) + name).c_str());
    text_ += ':';
}
void Json::text(const char* n, const char* value) {
    name("", n);
    quoted(value);
}
void Json::number(const char* n, uint64_t value) {
    name("", n);
    text_ += std::to_string(value);
}
void Json::integer(const char* n, int64_t value) {
    name("", n);
    text_ += std::to_string(value);
}
void Json::position(const char* n, uint3 v) {
    name("", n);
    text_ +=
        '[' + std::to_string(v.x) + ',' + std::to_string(v.y) + ',' + std::to_string(v.z) + ']';
}
void Json::site(const char* prefix, EmuSite s) {
    name(prefix, "file");
    quoted(s.file);
    name(prefix, "line");
    text_ += std::to_string(s.line);
}
void Json::code(const char* prefix, const void* pc) {
    const Code at = code_at(pc);
    if (!at.module) return;
    name(prefix, "module");
    quoted(at.module);
    char offset[32];
    snprintf(offset, sizeof offset, "0x%zx", at.offset);
    name(prefix, "offset");
    quoted(offset);
}
void Json::numbers(const char* n, const size_t* values) {
    begin_list(n);
    for (const size_t* value = values; *value; ++value)
        text_ += (value == values ? "" : ",") + std::to_string(*value);
    end_list();
}
void Json::begin_list(const char* n) {
    name("", n);
    text_ += '[';
}
void Json::end_list() { text_ += ']'; }
void Json::begin_object() {
    if (text_.back() != '[') text_ += ',';
    text_ += '{';
}
void Json::end_object() { text_ += '}'; }
void Json::end() {
    text_ += "}\n";
    static const int fd = report_fd();
    for (size_t done = 0; fd >= 0 && done < text_.size();) {
        ssize_t n = write(fd, text_.data() + done, text_.size() - done);
        if (n <= 0) return;
        done += size_t(n);
    }
}

}  // namespace emu
