import CCurl
import HearthModel
import HearthStorage
import Synchronization

/// The keys of an issuer, from a JSON Web Key Set in a file or at an address. Source: RFC 7517.
///
/// They are fetched when a token first needs them, again when they have aged, and when a token names a key that isn't among
/// them, though not more often than once a minute: whoever makes up key ids must not make the server ask for each.
final class KeySet: Sendable {
    enum Place: Sendable, Equatable {
        case file(String)
        case address(String)
    }

    private struct State {
        var keys: [String: SigningKey] = [:]
        /// Keys without an id.
        var nameless: [SigningKey] = []
        var fetched: UInt64?
        var tried: UInt64?
        var isFetching = false
        var waiting: [@Sendable () -> Void] = []
        var failure: String?
    }

    private static let ageNanosecondsMax: UInt64 = 3600 * 1_000_000_000
    private static let pauseNanoseconds: UInt64 = 60 * 1_000_000_000
    static let timeoutMilliseconds = 5000
    private static let sizeBytesMax = 1 << 20

    let place: Place
    private let clock: any Clock
    private let threads: WorkerGroup
    private let state = Mutex(State())

    init(_ place: Place, clock: any Clock, threads: WorkerGroup) {
        self.place = place
        self.clock = clock
        self.threads = threads
    }

    /// Gives the keys that may have signed a token to `done`: now, or from another thread when they had to be fetched.
    func keys(
        for token: JSONWebToken, _ done: @escaping @Sendable (Result<[SigningKey], Status>) -> Void
    ) {
        let now = clock.monotonicNanoseconds()
        let ready = state.withLock { state -> [SigningKey]? in
            let found = Self.matching(token, state)
            let isFresh = state.fetched.map { now - $0 < Self.ageNanosecondsMax } ?? false
            let isTooSoon = state.tried.map { now - $0 < Self.pauseNanoseconds } ?? false
            if isFresh && !found.isEmpty || isTooSoon && !state.isFetching { return found }
            state.waiting.append { [self] in
                done(self.state.withLock { Self.answer(token, $0) })
            }
            if !state.isFetching {
                state.isFetching = true
                state.tried = now
                threads.run(for: .server, refused: { [self] in failed($0) }) { [self] in fetch() }
            }
            return nil
        }
        if let ready {
            done(ready.isEmpty ? state.withLock { Self.answer(token, $0) } : .success(ready))
        }
    }

    private static func matching(_ token: JSONWebToken, _ state: State) -> [SigningKey] {
        let candidates =
            token.keyID.map { id in state.keys[id].map { [$0] } ?? [] } ?? (Array(state.keys.values) + state.nameless)
        return candidates.filter { $0.algorithm.rawValue == token.algorithm }
    }

    private static func answer(_ token: JSONWebToken, _ state: State) -> Result<[SigningKey], Status> {
        let found = matching(token, state)
        if !found.isEmpty { return .success(found) }
        if state.fetched == nil, let failure = state.failure {
            return .failure(.unavailable("The keys of the token's issuer can't be had: \(failure)."))
        }
        return .failure(Status(.unauthenticated, "The token is signed by a key that its issuer doesn't have."))
    }

    // MARK: Fetching

    private func fetch() { finish(Result { () throws(Status) in try Self.parse(try read()) }) }

    private func failed(_ status: Status) { finish(.failure(status)) }

    private func finish(_ result: Result<([String: SigningKey], [SigningKey]), Status>) {
        let waiting = state.withLock { state in
            state.isFetching = false
            switch result {
            case .success(let (keys, nameless)):
                state.keys = keys
                state.nameless = nameless
                state.fetched = clock.monotonicNanoseconds()
                state.failure = nil
            case .failure(let status): state.failure = status.message
            }
            defer { state.waiting = [] }
            return state.waiting
        }
        for done in waiting { done() }
    }

    private func read() throws(Status) -> [UInt8] {
        switch place {
        case .file(let path):
            guard let text = try TextFile.read(path) else { throw .notFound("\(path) is not there") }
            return text
        case .address(let address): return try Self.download(address)
        }
    }

    private final class Download {
        var bytes: [UInt8] = []
    }

    private static func download(_ address: String) throws(Status) -> [UInt8] {
        guard let handle = curl_easy_init() else { throw .unavailable("libcurl can't be used") }
        defer { curl_easy_cleanup(handle) }
        let download = Download()
        curl_set_address(handle, address)
        curl_set_bounds(handle, timeoutMilliseconds)
        curl_set_sink(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let download = Unmanaged<Download>.fromOpaque(context).takeUnretainedValue()
                if download.bytes.count + size * count > KeySet.sizeBytesMax { return 0 }
                download.bytes.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
                return size * count
            }, Unmanaged.passUnretained(download).toOpaque())
        let code = curl_easy_perform(handle)
        guard code == CURLE_OK else { throw .unavailable(String(cString: curl_easy_strerror(code))) }
        return download.bytes
    }

    private static func parse(_ text: [UInt8]) throws(Status) -> ([String: SigningKey], [SigningKey]) {
        guard case .array(let members)? = try PlainJSON.object(text)["keys"] else {
            throw .invalidArgument("what came is no JSON Web Key Set")
        }
        var keys: [String: SigningKey] = [:]
        var nameless: [SigningKey] = []
        for case .map(let member) in members {
            guard let key = SigningKey.jsonWebKey(member) else { continue }
            if case .string(let id)? = member["kid"] { keys[id] = key } else { nameless.append(key) }
        }
        if keys.isEmpty, nameless.isEmpty { throw .invalidArgument("there is no key for RS256 or ES256 in it") }
        return (keys, nameless)
    }
}
