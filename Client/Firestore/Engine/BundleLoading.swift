internal import Foundation
internal import HearthModel

/// Reports a bundle's progress to observers, in the order of their registration, and then to the completion.
final class BundleLoading: Sendable {
    typealias Observer = Carried<(LoadBundleTaskProgress) -> Void>
    typealias Completion = @Sendable (Result<LoadBundleTaskProgress, Status>) -> Void

    private struct State {
        var observers: [(handle: Int, observer: Observer)] = []
        var nextHandle = 1
        /// The last step after it was reported. An observer that is added later receives it at once.
        var end: LoadBundleTaskProgress?
    }

    private let state = Locked(State())
    private let firestore: Firestore

    private init(_ firestore: Firestore) { self.firestore = firestore }

    @discardableResult
    static func start(
        _ firestore: Firestore, _ source: BundleSource,
        _ completion: Carried<(LoadBundleTaskProgress?, (any Error)?) -> Void>?
    ) -> BundleLoading {
        start(firestore, source) { progress, result in
            guard let completion else { return }
            switch result {
            case .success: completion.value(progress, nil)
            case .failure(let status): completion.value(progress, status.nsError)
            }
        }
    }

    /// For `async` calls: the completion does not use a queue of the user.
    static func start(_ firestore: Firestore, _ source: BundleSource, completion: @escaping Completion) {
        firestore.engine.loadBundle(read: source.read) { progress, status in
            if let status { return completion(.failure(status)) }
            if progress.state == .success { completion(.success(LoadBundleTaskProgress(progress))) }
        }
    }

    private static func start(
        _ firestore: Firestore, _ source: BundleSource,
        atEnd: @escaping @Sendable (LoadBundleTaskProgress, Result<Void, Status>) -> Void
    ) -> BundleLoading {
        let loading = BundleLoading(firestore)
        firestore.engine.loadBundle(read: source.read) { progress, status in
            let step = LoadBundleTaskProgress(progress)
            firestore.deliver {
                for observer in loading.observers(of: step) { observer.value(step) }
                switch progress.state {
                case .inProgress: return
                case .success: atEnd(step, .success(()))
                case .error: atEnd(step, .failure(status ?? .internalError("Loading the bundle failed.")))
                }
            }
        }
        return loading
    }

    func add(_ observer: Observer) -> Int {
        let (handle, end) = state.with { state in
            defer { state.nextHandle += 1 }
            if state.end == nil { state.observers.append((state.nextHandle, observer)) }
            return (state.nextHandle, state.end)
        }
        if let end { firestore.deliver { observer.value(end) } }
        return handle
    }

    /// The observers of a step. The last step is stored under the same lock, so that no new observer misses it.
    private func observers(of step: LoadBundleTaskProgress) -> [Observer] {
        state.with { state in
            let observers = state.observers.map(\.observer)
            if step.state != .inProgress {
                state.end = step
                state.observers = []
            }
            return observers
        }
    }

    func remove(_ handle: Int) { state.with { $0.observers.removeAll { $0.handle == handle } } }

    func removeAll() { state.with { $0.observers = [] } }
}
