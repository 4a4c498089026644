// The ELF symbol table, read from the file.
#include "symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace emu {
namespace {

class Mapped {  // a file, as memory
   public:
    explicit Mapped(const char* path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat info;
        if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
            void* memory = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
            if (memory != MAP_FAILED)
                first_ = static_cast<char*>(memory), bytes_ = size_t(info.st_size);
        }
        if (fd >= 0) close(fd);
    }
    ~Mapped() {
        if (first_) munmap(first_, bytes_);
    }
    Mapped(const Mapped&) = delete;
    // Null where the file is too short for it.
    template <class T>
    const T* at(size_t offset, size_t count = 1) const {
        bool fits = offset <= bytes_ && count <= (bytes_ - offset) / sizeof(T);
        return fits ? reinterpret_cast<const T*>(first_ + offset) : nullptr;
    }

   private:
    char* first_ = nullptr;
    size_t bytes_ = 0;
};

std::string readable(const char* name) {
    if (strncmp(name, "_Z", 2)) return name;  // else "w" would be taken for wchar_t
    int status = 0;
    char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = text ? text : name;
    free(text);
    return result;
}

}  // namespace

std::vector<Symbol> variables(const char* path, size_t base) {
    std::vector<Symbol> objects;
    Mapped file(path);
    auto* header = file.at<Elf64_Ehdr>(0);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
        return objects;
    auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
    auto is_constant = [&](unsigned section) {
        if (section >= header->e_shnum || header->e_shstrndx >= header->e_shnum) return false;
        constexpr char kPrefix[] = ".emu_constant.";
        const size_t at = sections[header->e_shstrndx].sh_offset + sections[section].sh_name;
        auto* name = file.at<char>(at, sizeof kPrefix);
        return name && !strncmp(name, kPrefix, sizeof kPrefix - 1);
    };
    for (int i = 0; sections && i < header->e_shnum; ++i) {
        const Elf64_Shdr& table = sections[i];
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
        const Elf64_Shdr& strings = sections[table.sh_link];
        auto* text = file.at<char>(strings.sh_offset, strings.sh_size);
        auto* symbols = file.at<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym));
        for (size_t k = 0; text && symbols && k < table.sh_size / sizeof(Elf64_Sym); ++k) {
            const Elf64_Sym& s = symbols[k];
            if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || !s.st_size || s.st_shndx == SHN_UNDEF)
                continue;
            if (s.st_name >= strings.sh_size) continue;
            objects.push_back({reinterpret_cast<const char*>(base + s.st_value), s.st_size,
                               readable(text + s.st_name), is_constant(s.st_shndx)});
        }
    }
    return objects;
}

}  // namespace emu
