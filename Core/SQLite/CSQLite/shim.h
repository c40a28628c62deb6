#ifndef HEARTH_CSQLITE_SHIM_H
#define HEARTH_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Swift can't call variadic functions. */

/* SQLite counts its memory under one process-wide lock unless it is told not to before first use. */
static inline int hearth_sqlite3_disable_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

#endif
