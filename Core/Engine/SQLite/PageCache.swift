import CSQLite

/// A layer over SQLite's own cache of pages that saves commits a walk over all of it.
///
/// At the end of each transaction SQLite makes the cache drop the pages after the end of the file. There are none, but
/// the cache doesn't know: while a tree is balanced, pages are moved for a moment to a number far after the end, and
/// the cache remembers the highest number that it ever held. Then it visits every page, each of them a miss of the
/// CPU's cache: with 64 MiB of pages that costs a tenth of a group of commits. This layer knows the few numbers to
/// which pages were moved, and passes the request on when one of them is still there.
///
/// Source: "Custom Page Cache Object", https://www.sqlite.org/c3ref/pcache_methods2.html.
enum PageCache {
    /// The known bounds of the numbers under which a cache holds pages.
    struct Contents {
        /// The highest number under which a page may be held, apart from `moved`.
        private(set) var highest: UInt32 = 0
        /// Numbers above it to which pages were moved. A page that was dropped since may still be among them.
        private(set) var moved: [UInt32] = []

        /// More than one rebalancing needs.
        static var movedMax: Int { 32 }

        mutating func hold(_ number: UInt32) {
            if number > highest { highest = number }
        }

        mutating func move(from old: UInt32, to new: UInt32) {
            moved.removeAll { $0 == old }
            if new <= highest { return }
            moved.append(new)
            if moved.count > Self.movedMax { settle() }
        }

        /// Whether there may be a page whose number is `limit` or above.
        func mayReach(_ limit: UInt32) -> Bool { highest >= limit || moved.contains { $0 >= limit } }

        mutating func truncated(to limit: UInt32) {
            moved.removeAll { $0 >= limit }
            highest = min(highest, max(limit, 1) - 1)
            settle()
        }

        private mutating func settle() {
            highest = max(highest, moved.max() ?? 0)
            moved = []
        }
    }

    /// One cache, in SQLite's representation.
    fileprivate struct Cache {
        /// SQLite's own cache.
        let inner: OpaquePointer
        let fetch: @convention(c) (OpaquePointer?, UInt32, Int32) -> UnsafeMutablePointer<sqlite3_pcache_page>?
        var contents = Contents()
    }

    /// SQLite's own methods; set before the first cache is made, and not changed from then on.
    nonisolated(unsafe) fileprivate static var below = sqlite3_pcache_methods2()

    /// Installs the layer. Must be called once, before any other use of SQLite.
    /// - Returns: false when SQLite is in use in this process already; then it continues without the layer.
    static func install() -> Bool {
        var methods = sqlite3_pcache_methods2()
        if hearth_sqlite3_page_cache(&methods) != SQLITE_OK || methods.xFetch == nil { return false }
        below = methods
        methods.xCreate = { pageBytes, extraBytes, isPurgeable in
            guard let inner = PageCache.below.xCreate(pageBytes, extraBytes, isPurgeable) else { return nil }
            let cache = UnsafeMutablePointer<Cache>.allocate(capacity: 1)
            cache.initialize(to: Cache(inner: inner, fetch: PageCache.below.xFetch))
            return OpaquePointer(cache)
        }
        methods.xCachesize = { PageCache.below.xCachesize(cache($0).pointee.inner, $1) }
        methods.xPagecount = { PageCache.below.xPagecount(cache($0).pointee.inner) }
        methods.xFetch = { handle, number, creation in
            let cache = cache(handle)
            if creation != 0 { cache.pointee.contents.hold(number) }
            return cache.pointee.fetch(cache.pointee.inner, number, creation)
        }
        methods.xUnpin = { PageCache.below.xUnpin(cache($0).pointee.inner, $1, $2) }
        methods.xRekey = { handle, page, old, new in
            cache(handle).pointee.contents.move(from: old, to: new)
            PageCache.below.xRekey(cache(handle).pointee.inner, page, old, new)
        }
        methods.xTruncate = { handle, limit in
            let cache = cache(handle)
            if cache.pointee.contents.mayReach(limit) { PageCache.below.xTruncate(cache.pointee.inner, limit) }
            cache.pointee.contents.truncated(to: limit)
        }
        methods.xDestroy = { handle in
            let cache = cache(handle)
            PageCache.below.xDestroy(cache.pointee.inner)
            cache.deinitialize(count: 1)
            cache.deallocate()
        }
        methods.xShrink = { PageCache.below.xShrink(cache($0).pointee.inner) }
        return hearth_sqlite3_set_page_cache(&methods) == SQLITE_OK
    }
}

private func cache(_ handle: OpaquePointer?) -> UnsafeMutablePointer<PageCache.Cache> {
    UnsafeMutablePointer(handle!)
}
