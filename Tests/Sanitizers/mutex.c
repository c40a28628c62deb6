// Tells ThreadSanitizer of Synchronization.Mutex, whose contended paths stand in the Swift runtime, which isn't
// instrumented: without this every access behind a mutex that was waited for is reported as a race. Preloaded by
// Tools/scripts/sanitize.sh; a lock still excludes nobody but those who take it, so that real races stay visible.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SELF __attribute__((swift_context)) void *self

void __tsan_acquire(void *) __attribute__((weak));
void __tsan_release(void *) __attribute__((weak));

typedef __attribute__((swiftcall)) void Lock(uint32_t, SELF);
typedef __attribute__((swiftcall)) _Bool TryLock(SELF);
typedef __attribute__((swiftcall)) void Unlock(SELF);

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

__attribute__((swiftcall)) void hearth_lock(uint32_t thread, SELF) __asm__(LOCK);
__attribute__((swiftcall)) _Bool hearth_try_lock(SELF) __asm__(TRY_LOCK);
__attribute__((swiftcall)) void hearth_unlock(SELF) __asm__(UNLOCK);

__attribute__((swiftcall)) void hearth_lock(uint32_t thread, SELF) {
    static Lock *original;
    if (!original) original = (Lock *)dlsym(RTLD_NEXT, LOCK);
    original(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

__attribute__((swiftcall)) _Bool hearth_try_lock(SELF) {
    static TryLock *original;
    if (!original) original = (TryLock *)dlsym(RTLD_NEXT, TRY_LOCK);
    _Bool taken = original(self);
    if (taken && __tsan_acquire) __tsan_acquire(self);
    return taken;
}

__attribute__((swiftcall)) void hearth_unlock(SELF) {
    static Unlock *original;
    if (!original) original = (Unlock *)dlsym(RTLD_NEXT, UNLOCK);
    if (__tsan_release) __tsan_release(self);
    original(self);
}
