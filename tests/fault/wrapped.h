/* wrapped.h - who allocates, and the allocation that fails.  A program of this folder is linked with --wrap for each function
 * below. */
#ifndef TESTS_FAULT_WRAPPED_H
#define TESTS_FAULT_WRAPPED_H
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *text);
void *__real_aligned_alloc(size_t align, size_t n);
int   __real_posix_memalign(void **out, size_t align, size_t n);
int   __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
void  __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *text);
void *__wrap_aligned_alloc(size_t align, size_t n);
int   __wrap_posix_memalign(void **out, size_t align, size_t n);
int   __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
void  __wrap_free(void *p);

static int  counting; /* set around the calls under test */
static long n_asked, fail_at, n_live;

static int refuse(void) { return counting && ++n_asked == fail_at; }

static void *count(void *p)
{
    n_live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n) { return refuse() ? NULL : count(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return refuse() ? NULL : count(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t align, size_t n) { return refuse() ? NULL : count(__real_aligned_alloc(align, n)); }

char *__wrap_strdup(const char *text) { return refuse() ? NULL : count(__real_strdup(text)); }

void *__wrap_realloc(void *p, size_t n)
{
    if (refuse()) return NULL;
    void *grown = __real_realloc(p, n);
    n_live += !p && grown;
    return grown;
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    if (refuse()) return 12; /* ENOMEM */
    const int status = __real_posix_memalign(out, align, n);
    n_live += !status;
    return status;
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return refuse() ? 11 /* EAGAIN */ : __real_pthread_create(out, attr, fn, arg);
}

void __wrap_free(void *p)
{
    n_live -= p != NULL;
    __real_free(p);
}

/* A file that was left open takes this number. */
static inline int lowest_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    if (fd < 0 || close(fd)) abort();
    return fd;
}

#endif
