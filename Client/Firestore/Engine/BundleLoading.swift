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

/// A bundle's bytes in chunks. The engine reads them on a dedicated thread.
final class BundleSource: Sendable {
    private enum Content {
        case data(Data, position: Int)
        case stream(InputStream, isOpen: Bool)
        case remote(RemoteBundle)
    }

    private let content: Locked<Content>

    init(_ data: Data) { content = Locked(.data(data, position: data.startIndex)) }

    init(_ stream: InputStream) { content = Locked(.stream(Carried(stream).value, isOpen: false)) }

    /// - Throws: `INVALID_ARGUMENT` for a URL whose scheme is not `file`, `http` or `https`.
    init(_ url: URL, _ firestore: Firestore) throws(Status) {
        switch url.scheme?.lowercased() {
        case "file":
            guard let stream = InputStream(fileAtPath: url.path) else {
                throw .invalidArgument("loadBundle(from:) cannot read \(url.absoluteString).")
            }
            content = Locked(.stream(Carried(stream).value, isOpen: false))
        case "http", "https":
            content = Locked(.remote(RemoteBundle(url, tls: firestore.settings.tls, tasks: firestore.tasks)))
        default:
            throw .invalidArgument(
                "loadBundle(from:) takes URLs of files, http and https, but got \(url.absoluteString).")
        }
    }

    /// At most the given number of bytes; none at the end.
    func read(_ countMax: Int) throws -> [UInt8] {
        try content.with { content in
            switch content {
            case .data(let data, let position):
                let piece = data[position...].prefix(countMax)
                content = .data(data, position: piece.endIndex)
                return [UInt8](piece)
            case .stream(let stream, let isOpen):
                if !isOpen {
                    stream.open()
                    content = .stream(stream, isOpen: true)
                }
                return try Self.read(stream, countMax)
            case .remote(let bundle):
                let data = try bundle.bytes()
                let piece = data.prefix(countMax)
                content = .data(data, position: piece.endIndex)
                return [UInt8](piece)
            }
        }
    }

    private static func read(_ stream: InputStream, _ countMax: Int) throws(Status) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: countMax)
        let count = stream.read(&piece, maxLength: countMax)
        if count < 0 {
            stream.close()
            throw Status(
                .dataLoss, "Unable to read from the stream: \(stream.streamError?.localizedDescription ?? "?")")
        }
        if count == 0 { stream.close() }
        return Array(piece.prefix(count))
    }

    /// The whole contents of a stream as a string.
    static func string(of stream: InputStream) throws(Status) -> String {
        stream.open()
        var bytes: [UInt8] = []
        while true {
            let piece = try read(stream, 1 << 16)
            if piece.isEmpty { break }
            bytes += piece
        }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw .invalidArgument("The stream does not contain valid UTF-8.")
        }
        return string
    }
}
