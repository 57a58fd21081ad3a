/* wrapped.h - who allocates, and the allocation that fails.  A program of this folder is linked with --wrap for each function
 * below. */
#ifndef TESTS_FAULT_WRAPPED_H
#define TESTS_FAULT_WRAPPED_H
#include <pthread.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
int   __real_posix_memalign(void **out, size_t align, size_t n);
int   __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
void  __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
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

#endif
