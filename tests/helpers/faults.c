/* Loaded before all libraries (LD_PRELOAD): memory that cannot be had and reads that fail, at the n-th call.
 *
 * Counted are allocations of at least `fault_least_bytes` and reads of one file, whoever calls: Python, numpy, the core.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, MEMORY, ERROR, SHORT };
int64_t fault_kind = NOTHING, fault_at = 0, fault_count = 0, fault_least_bytes = INT64_MAX, fault_lasts = 0;
uint64_t fault_device = 0, fault_inode = 0;

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int happens(void) {
    int64_t number = __atomic_add_fetch(&fault_count, 1, __ATOMIC_RELAXED);
    return number == fault_at || (fault_lasts && fault_at && number > fault_at);
}

static int lacks(size_t size) {
    if (fault_kind != MEMORY || size > INT64_MAX || (int64_t)size < fault_least_bytes || !happens())
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) { return lacks(size) ? NULL : __libc_malloc(size); }
void *realloc(void *old, size_t size) { return lacks(size) ? NULL : __libc_realloc(old, size); }
void *calloc(size_t count, size_t size) {
    return size && count <= SIZE_MAX / size && lacks(count * size) ? NULL : __libc_calloc(count, size);
}
int posix_memalign(void **out, size_t alignment, size_t size) {
    return lacks(size) || !(*out = __libc_memalign(alignment, size)) ? ENOMEM : 0;
}
void *aligned_alloc(size_t alignment, size_t size) { return lacks(size) ? NULL : __libc_memalign(alignment, size); }

/* Returns -1 for an error, the bytes that may be read for a short read, else all of them. */
static ssize_t allowed(int file, size_t size) {
    struct stat status;
    if ((fault_kind != ERROR && fault_kind != SHORT) || !size || fstat(file, &status) ||
        (uint64_t)status.st_dev != fault_device || (uint64_t)status.st_ino != fault_inode || !happens())
        return (ssize_t)size;
    if (fault_kind == SHORT)
        return (ssize_t)(size + 1) / 2;
    errno = EIO;
    return -1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int file, void *to, size_t size) {
    REAL(read);
    ssize_t some = allowed(file, size);
    return some < 0 ? some : real(file, to, (size_t)some);
}
ssize_t pread(int file, void *to, size_t size, off_t at) {
    REAL(pread);
    ssize_t some = allowed(file, size);
    return some < 0 ? some : real(file, to, (size_t)some, at);
}
ssize_t pread64(int file, void *to, size_t size, off64_t at) {
    REAL(pread64);
    ssize_t some = allowed(file, size);
    return some < 0 ? some : real(file, to, (size_t)some, at);
}
static ssize_t scattered(int file, const struct iovec *parts, int count, off64_t at) {
    size_t all = 0;
    for (int i = 0; i < count; i++)
        all += parts[i].iov_len;
    ssize_t some = allowed(file, all), done = 0;
    for (int i = 0; some >= 0 && i < count && done < some; i++) { /* one part after the other: tests need no speed */
        size_t left = (size_t)(some - done), size = parts[i].iov_len < left ? parts[i].iov_len : left;
        REAL(pread64);
        ssize_t got = real(file, parts[i].iov_base, size, at + done);
        if (got <= 0)
            return done ? done : got;
        done += got;
    }
    return some < 0 ? some : done;
}
ssize_t preadv(int file, const struct iovec *parts, int count, off_t at) { return scattered(file, parts, count, at); }
ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t at) {
    return scattered(file, parts, count, at);
}
ssize_t preadv2(int file, const struct iovec *parts, int count, off_t at, int flags) {
    (void)flags;
    return scattered(file, parts, count, at);
}
ssize_t preadv64v2(int file, const struct iovec *parts, int count, off64_t at, int flags) {
    (void)flags;
    return scattered(file, parts, count, at);
}
