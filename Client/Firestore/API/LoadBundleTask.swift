public import Foundation
internal import HearthModel

/// Identifies an observer of a `LoadBundleTask`.
public typealias LoadBundleObserverHandle = Int

/// The loading of a bundle into the cache.
public final class LoadBundleTask {
    private let loading: BundleLoading

    init(_ loading: BundleLoading) { self.loading = loading }

    /// Adds an observer.
    /// - Parameter observer: receives every later step on `settings.dispatchQueue`. After the end it receives the last
    ///   step at once.
    /// - Returns: the handle for `removeObserverWith(handle:)`.
    @discardableResult
    public func addObserver(_ observer: @escaping (LoadBundleTaskProgress) -> Void) -> LoadBundleObserverHandle {
        loading.add(Carried(observer))
    }

    /// Removes one observer.
    /// - Parameter handle: what `addObserver(_:)` returned. Any other handle has no effect.
    public func removeObserverWith(handle: LoadBundleObserverHandle) { loading.remove(handle) }

    /// Removes all observers.
    public func removeAllObservers() { loading.removeAll() }
}

extension Firestore {
    /// Loads a bundle's documents and named queries into the cache. It needs no network.
    /// - Parameters:
    ///   - bundleData: the bundle: the bytes of a file that `hearth bundle build` or a server SDK made.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the last progress, or with an `NSError` of
    ///     `FirestoreErrorDomain`, for example `dataLoss` for an invalid bundle.
    /// - Returns: the task, which reports progress to its observers. The loading continues when it is released.
    @discardableResult
    public func loadBundle(
        _ bundleData: Data, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        LoadBundleTask(BundleLoading.start(self, BundleSource(bundleData), completion.map { Carried($0) }))
    }

    /// Loads a bundle's documents and named queries into the cache. It needs no network.
    /// - Parameters:
    ///   - bundleStream: the stream of a file or of data. On Linux, Foundation's `InputStream(url:)` with any other URL
    ///     ends the program: use `loadBundle(from:)` for these.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the last progress, or with an `NSError` of
    ///     `FirestoreErrorDomain`, for example `dataLoss` for an invalid bundle.
    /// - Returns: the task, which reports progress to its observers. The loading continues when it is released.
    @discardableResult
    public func loadBundle(
        _ bundleStream: InputStream, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        LoadBundleTask(BundleLoading.start(self, BundleSource(bundleStream), completion.map { Carried($0) }))
    }

    /// Loads a bundle from a file or a server. The request to the server has no credentials. Apple's library has no
    /// such function.
    /// - Parameters:
    ///   - url: a URL with the scheme `file`, `http` or `https`; any other ends the program. A bundle from a server has
    ///     at most 256 MiB.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` and receives the last progress, or an `NSError` of
    ///     `FirestoreErrorDomain`: `notFound`, `permissionDenied` or `unavailable` by the server's answer,
    ///     `resourceExhausted` when the bundle is too large.
    /// - Returns: the task, which reports progress to its observers. The loading continues when it is released.
    @discardableResult
    public func loadBundle(
        from url: URL, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)? = nil
    ) -> LoadBundleTask {
        let source = orTrap { () throws(Status) in try BundleSource(url, self) }
        return LoadBundleTask(BundleLoading.start(self, source, completion.map { Carried($0) }))
    }

    /// Loads a bundle from a file or a server. The request to the server has no credentials.
    /// - Parameter url: a URL with the scheme `file`, `http` or `https`; any other ends the program. A bundle from a
    ///   server has at most 256 MiB.
    /// - Returns: the last progress: its `state` is `success`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `notFound`, `permissionDenied` or `unavailable` by the
    ///   server's answer, `resourceExhausted` when the bundle is too large. `CancellationError` when the task is
    ///   cancelled; the loading continues.
    @discardableResult
    nonisolated(nonsending) public func loadBundle(from url: URL) async throws -> LoadBundleTaskProgress {
        let source = orTrap { () throws(Status) in try BundleSource(url, self) }
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    /// Loads a bundle's documents and named queries into the cache. It needs no network.
    /// - Parameter bundleData: the bundle: the bytes of a file that `hearth bundle build` or a server SDK made.
    /// - Returns: the last progress: its `state` is `success`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`, for example `dataLoss` for an invalid bundle.
    ///   `CancellationError` when the task is cancelled; the loading continues.
    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleData: Data) async throws -> LoadBundleTaskProgress {
        let source = BundleSource(bundleData)
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    /// Loads a bundle's documents and named queries into the cache. It needs no network.
    /// - Parameter bundleStream: the stream of a file or of data, not yet opened.
    /// - Returns: the last progress: its `state` is `success`.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`, for example `dataLoss` for an invalid bundle.
    ///   `CancellationError` when the task is cancelled; the loading continues.
    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleStream: InputStream) async throws -> LoadBundleTaskProgress {
        let source = BundleSource(bundleStream)
        return try await waiting { BundleLoading.start(self, source, completion: $0) }
    }

    /// Finds a named query of a loaded bundle. It reads only the cache.
    /// - Parameters:
    ///   - name: the query's name in the bundle.
    ///   - completion: runs on `FirestoreSettings.dispatchQueue` with the query; with nil when there is none with this
    ///     name.
    public func getQuery(named name: String, completion: @escaping (Query?) -> Void) {
        let carried = Carried(completion)
        engine.namedQuery(name) { [self] query in
            deliver { carried.value(query.map { Query(firestore: self, $0) }) }
        }
    }

    /// Finds a named query of a loaded bundle. It reads only the cache.
    /// - Parameter name: the query's name in the bundle.
    /// - Returns: the query; nil when there is none with this name.
    @discardableResult
    nonisolated(nonsending) public func getQuery(named name: String) async -> Query? {
        await withCheckedContinuation { continuation in
            engine.namedQuery(name) { [self] query in
                continuation.resume(returning: query.map { Query(firestore: self, $0) })
            }
        }
    }
}
