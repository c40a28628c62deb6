import HearthConcurrency
import CCurl
import HearthModel
import HearthDocuments
import Synchronization

/// The keys of an issuer, from a JSON Web Key Set in a file or at a URL. Source: RFC 7517.
///
/// A key that its issuer withdraws must not be accepted for longer than a minute. While tokens of the issuer are in
/// use, the set is fetched again every `refreshSeconds`, in the background; after `staleSeconds` without a fetch, a
/// request waits for one. After a failed fetch the keys stay valid for at most `staleSecondsMax`. There is at most one
/// fetch in `refreshSeconds`: a client that invents key IDs must not trigger a fetch for each of them.
final class KeySet: Sendable {
    enum Source: Sendable, Equatable {
        case file(String)
        case address(String)
    }

    /// Keys that may have signed a token.
    struct Candidates: Sendable {
        var keys: [SigningKey]
        /// The generation of the set in which they were found.
        var generation: UInt64
    }

    /// Whether tokens signed by a key are accepted.
    enum Validity {
        case accepted
        /// The set is too old to decide.
        case unknown
        case withdrawn
    }

    private struct Member {
        /// As written by the issuer: a key stays the same object while this stays the same.
        var content: MapValue
        /// Nil when the key has none.
        var id: String?
        var key: SigningKey
    }

    private struct State {
        var members: [Member] = []
        /// Monotonic nanoseconds.
        var fetched: UInt64?
        var tried: UInt64?
        var isFetching = false
        var waiting: [@Sendable () -> Void] = []
        var failure: String?
    }

    static let refreshSeconds: UInt64 = 20
    static let staleSeconds: UInt64 = 45
    static let staleSecondsMax: UInt64 = 3600
    static let timeoutMilliseconds = 5000
    private static let sizeBytesMax = 1 << 20

    let source: Source
    private let clock: any Clock
    private let threads: WorkerGroup
    private let state = Mutex(State())
    /// Incremented when a new set lacks a key of the previous one.
    private let generation = Atomic<UInt64>(0)
    /// The time, in monotonic nanoseconds, until which the set needs no refresh.
    private let freshUntil = Atomic<UInt64>(0)

    init(_ source: Source, clock: any Clock, threads: WorkerGroup) {
        self.source = source
        self.clock = clock
        self.threads = threads
    }

    /// Calls `done` with the keys that may have signed a token: immediately, or from another thread after a fetch.
    func keys(
        for token: JSONWebToken, _ done: @escaping @Sendable (Result<Candidates, Status>) -> Void
    ) {
        let (ready, mustFetch) = state.withLock { state -> (Result<Candidates, Status>?, Bool) in
            let now = clock.monotonicNanoseconds()
            let answer = answer(token, state, now)
            let isAllowed = !state.isFetching && !Self.isWithin(Self.refreshSeconds, state.tried, now)
            if case .success = answer, isUsable(state, now) {
                let isDue = !Self.isWithin(Self.refreshSeconds, state.fetched, now)
                return (answer, isDue && isAllowed && Self.beginFetch(&state, now))
            }
            // The set is too old, or has no such key, and a newer one is not available at present.
            if !isAllowed, !state.isFetching { return (answer, false) }
            state.waiting.append { [self] in
                done(self.state.withLock { self.answer(token, $0, clock.monotonicNanoseconds()) })
            }
            return (nil, isAllowed && Self.beginFetch(&state, now))
        }
        if mustFetch { startFetch() }
        if let ready { done(ready) }
    }

    /// Whether tokens signed by `key` are still accepted. Takes no lock while the set is fresh.
    /// - Parameter known: the generation in which the key was found.
    func validity(of key: SigningKey, since known: UInt64) -> Validity {
        let now = clock.monotonicNanoseconds()
        if generation.load(ordering: .acquiring) == known, now < freshUntil.load(ordering: .relaxed) {
            return .accepted
        }
        let (validity, mustFetch) = state.withLock { state -> (Validity, Bool) in
            let isAllowed = !state.isFetching && !Self.isWithin(Self.refreshSeconds, state.tried, now)
            let mustFetch = isAllowed && Self.beginFetch(&state, now)
            if !state.members.contains(where: { $0.key === key }) { return (.withdrawn, mustFetch) }
            return (isUsable(state, now) ? .accepted : .unknown, mustFetch)
        }
        if mustFetch { startFetch() }
        return validity
    }

    /// Whether the set may be used without waiting for a newer one.
    private func isUsable(_ state: State, _ now: UInt64) -> Bool {
        // After a failed fetch, waiting for a newer set would only block requests.
        Self.isWithin(state.failure == nil ? Self.staleSeconds : Self.staleSecondsMax, state.fetched, now)
    }

    private static func isWithin(_ seconds: UInt64, _ time: UInt64?, _ now: UInt64) -> Bool {
        guard let time else { return false }
        // Another thread may have read the clock later than this one.
        return now <= time || now - time < seconds * 1_000_000_000
    }

    private func answer(_ token: JSONWebToken, _ state: State, _ now: UInt64) -> Result<Candidates, Status> {
        guard Self.isWithin(Self.staleSecondsMax, state.fetched, now) else {
            let failure = state.failure ?? "they have not been fetched yet"
            return .failure(.unavailable("The keys of the token's issuer can't be had: \(failure)."))
        }
        let found = state.members.filter { member in
            (token.keyID == nil || member.id == token.keyID) && member.key.algorithm.rawValue == token.algorithm
        }
        if found.isEmpty { return .failure(Self.withdrawn) }
        return .success(
            Candidates(keys: found.map(\.key), generation: generation.load(ordering: .relaxed)))
    }

    static let withdrawn = Status(.unauthenticated, "The token is signed by a key that its issuer doesn't have.")

    // MARK: Fetching

    private static func beginFetch(_ state: inout State, _ now: UInt64) -> Bool {
        state.isFetching = true
        state.tried = now
        return true
    }

    private func startFetch() {
        threads.run(for: .server, refused: { [self] in finish(.failure($0)) }) { [self] in
            finish(Result { () throws(Status) in try parse(try read()) })
        }
    }

    private func finish(_ result: Result<[Member], Status>) {
        let waiting = state.withLock { state in
            state.isFetching = false
            switch result {
            case .success(let members):
                let isLess = !state.members.allSatisfy { old in members.contains { $0.key === old.key } }
                let now = clock.monotonicNanoseconds()
                state.members = members
                state.fetched = now
                state.failure = nil
                freshUntil.store(now + Self.refreshSeconds * 1_000_000_000, ordering: .relaxed)
                if isLess { generation.add(1, ordering: .releasing) }
            case .failure(let status): state.failure = status.message
            }
            defer { state.waiting = [] }
            return state.waiting
        }
        for done in waiting { done() }
    }

    private func read() throws(Status) -> [UInt8] {
        switch source {
        case .file(let path):
            // Clients get the reason, and need not know where the server keeps its files.
            let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
            do throws(Status) {
                guard let string = try TextFile.read(path) else { throw .notFound("\(path) is not there") }
                return string
            } catch {
                throw Status(error.code, error.message.replacing(path, with: String(name)))
            }
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

    private func parse(_ string: [UInt8]) throws(Status) -> [Member] {
        guard case .array(let contents)? = try PlainJSON.object(string)["keys"] else {
            throw .invalidArgument("what came is no JSON Web Key Set")
        }
        let known = state.withLock { $0.members }
        var members: [Member] = []
        for case .map(let content) in contents {
            if let same = known.first(where: { $0.content == content }) {
                members.append(same)
                continue
            }
            guard let key = SigningKey.jsonWebKey(content) else { continue }
            var id: String?
            if case .string(let string)? = content["kid"] { id = string }
            members.append(Member(content: content, id: id, key: key))
        }
        if members.isEmpty { throw .invalidArgument("there is no key for RS256 or ES256 in it") }
        return members
    }
}
