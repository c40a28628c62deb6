#include "cbuild.h"

// 64 bytes with a section of their own, which Tools/scripts/package.sh replaces in the finished program: the commit can be
// in a release without a change of any source, and a commit alone compiles nothing again. Volatile, because the compiler
// must not take the zeros for what they will be.
__attribute__((section(".hearth_commit"), used)) static const volatile char commit[64] = {0};

const char *hearth_build_commit(void) { return (const char *)commit; }
