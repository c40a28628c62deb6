#ifndef HEARTH_CSQLITE_SHIM_H
#define HEARTH_CSQLITE_SHIM_H

#include <sqlite3.h>

/* Swift can't call variadic functions. */

/* SQLite counts its memory under one process-wide lock unless it is told not to before first use. */
static inline int hearth_sqlite3_disable_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/* What stands between SQLite and its pages in memory. */
static inline int hearth_sqlite3_page_cache(sqlite3_pcache_methods2 *methods) {
    return sqlite3_config(SQLITE_CONFIG_GETPCACHE2, methods);
}

static inline int hearth_sqlite3_set_page_cache(sqlite3_pcache_methods2 *methods) {
    return sqlite3_config(SQLITE_CONFIG_PCACHE2, methods);
}

/* The last connection of a file copies the log into it when it closes, unless it is told not to. */
static inline int hearth_sqlite3_keep_log_on_close(sqlite3 *handle) {
    return sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

#endif
