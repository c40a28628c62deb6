#ifndef HEARTH_CBUILD_H
#define HEARTH_CBUILD_H

// The commit that the program was made of, as a string; empty when nobody has written it in.
const char *hearth_build_commit(void);

#endif
