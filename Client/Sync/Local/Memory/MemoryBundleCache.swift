/// Names are identified by their bytes, as on disk: `String` compares by canonical equivalence.
final class MemoryBundleCache: BundleCache {
    private var bundles: [[UInt8]: BundleRecord] = [:]
    private var queries: [[UInt8]: NamedQuery] = [:]

    func bundle(_ id: String) -> BundleRecord? { bundles[Array(id.utf8)] }
    func save(_ bundle: BundleRecord) { bundles[Array(bundle.id.utf8)] = bundle }
    func namedQuery(_ name: String) -> NamedQuery? { queries[Array(name.utf8)] }
    func save(_ query: NamedQuery) { queries[Array(query.name.utf8)] = query }
}
