final class MemoryBundleCache: BundleCache {
    private var bundles: [String: BundleRecord] = [:]
    private var queries: [String: NamedQuery] = [:]

    func bundle(_ id: String) -> BundleRecord? { bundles[id] }
    func save(_ bundle: BundleRecord) { bundles[bundle.id] = bundle }
    func namedQuery(_ name: String) -> NamedQuery? { queries[name] }
    func save(_ query: NamedQuery) { queries[query.name] = query }
}
