public import Foundation
internal import HearthModel

/// Stands for an observer of a `LoadBundleTask`.
public typealias LoadBundleObserverHandle = Int

/// A bundle on its way into the cache.
public final class LoadBundleTask {
    private let loading: BundleLoading

    init(_ loading: BundleLoading) { self.loading = loading }

    /// - Parameter observer: hears every later step on the user's queue; after the end, how it ended.
    @discardableResult
    public func addObserver(_ observer: @escaping (LoadBundleTaskProgress) -> Void) -> LoadBundleObserverHandle {
        loading.add(Carried(observer))
    }

    public func removeObserverWith(handle: LoadBundleObserverHandle) { loading.remove(handle) }

    public func removeAllObservers() { loading.removeAll() }
}

/// How far a bundle was read.
public final class LoadBundleTaskProgress: Sendable, Hashable {
    public let documentsLoaded: Int
    public let totalDocuments: Int
    public let bytesLoaded: Int
    public let totalBytes: Int
    public let state: LoadBundleTaskState

    init(_ progress: BundleProgress) {
        documentsLoaded = progress.documentsLoaded
        totalDocuments = progress.totalDocuments
        bytesLoaded = progress.bytesLoaded
        totalBytes = progress.totalBytes
        state = progress.state
    }

    public static func == (left: LoadBundleTaskProgress, right: LoadBundleTaskProgress) -> Bool {
        left.documentsLoaded == right.documentsLoaded && left.totalDocuments == right.totalDocuments
            && left.bytesLoaded == right.bytesLoaded && left.totalBytes == right.totalBytes && left.state == right.state
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(documentsLoaded)
        hasher.combine(bytesLoaded)
        hasher.combine(state)
    }
}

extension Firestore {
    /// Loads a bundle's documents and named queries into the cache.
    @discardableResult
    public func loadBundle(
        _ bundleData: Data, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        LoadBundleTask(BundleLoading.start(self, BundleSource(bundleData), completion.map { Carried($0) }))
    }

    /// - Parameter bundleStream: of a file or of data. Foundation's `InputStream(url:)` can't be used with other URLs here, and
    ///   ends the program: `loadBundle(from:)` is for them.
    @discardableResult
    public func loadBundle(
        _ bundleStream: InputStream, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        LoadBundleTask(BundleLoading.start(self, BundleSource(bundleStream), completion.map { Carried($0) }))
    }

    /// Ours: loads a bundle of a file, or of a server, which is asked for it without credentials.
    /// - Parameter url: of the scheme `file`, `http` or `https`; at most 256 MiB.
    @discardableResult
    public func loadBundle(
        from url: URL, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        let source = orTrap { () throws(Status) in try BundleSource(url, self) }
        return LoadBundleTask(BundleLoading.start(self, source, completion.map { Carried($0) }))
    }

    @discardableResult
    nonisolated(nonsending) public func loadBundle(from url: URL) async throws -> LoadBundleTaskProgress {
        let source = orTrap { () throws(Status) in try BundleSource(url, self) }
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleData: Data) async throws -> LoadBundleTaskProgress {
        let source = BundleSource(bundleData)
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleStream: InputStream) async throws -> LoadBundleTaskProgress {
        let source = BundleSource(bundleStream)
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    /// A query that a bundle brought.
    /// - Parameter completion: nil when there is none of the name.
    public func getQuery(named name: String, completion: @escaping (Query?) -> Void) {
        let carried = Carried(completion)
        engine.namedQuery(name) { [self] query in
            deliver { carried.value(query.map { Query(firestore: self, $0) }) }
        }
    }

    @discardableResult
    nonisolated(nonsending) public func getQuery(named name: String) async -> Query? {
        await withCheckedContinuation { continuation in
            engine.namedQuery(name) { [self] query in
                continuation.resume(returning: query.map { Query(firestore: self, $0) })
            }
        }
    }
}
