#ifndef HEARTH_COPENSSLSTART_H
#define HEARTH_COPENSSLSTART_H

// Nothing to call: see start.c.

#endif
