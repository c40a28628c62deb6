import HearthConcurrency
import CCurl
import HearthModel
import HearthDocuments
import Synchronization

/// The keys of an issuer, from a JSON Web Key Set in a file or at an address. Source: RFC 7517.
///
/// A key that its issuer withdraws must not be believed for longer than a minute. While tokens of the issuer are in use, the set
/// is fetched again every `refreshSeconds`, beside the requests; after `staleSeconds` without one, a request waits for it. A
/// fetch that fails leaves the keys in force for at most `keptSecondsMax`. There is never more than one fetch in
/// `refreshSeconds`: whoever makes up key ids must not make the server ask for each.
final class KeySet: Sendable {
    enum Place: Sendable, Equatable {
        case file(String)
        case address(String)
    }

    /// Keys that may have signed a token.
    struct Candidates: Sendable {
        var keys: [SigningKey]
        /// Of the set in which they were found.
        var generation: UInt64
    }

    /// Whether a token that a key has signed is believed.
    enum Standing {
        case believed
        /// The set is too old to say so.
        case unknown
        case withdrawn
    }

    private struct Member {
        /// As the issuer wrote it: a key stays the same object while this stays the same.
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
    static let keptSecondsMax: UInt64 = 3600
    static let timeoutMilliseconds = 5000
    private static let sizeBytesMax = 1 << 20

    let place: Place
    private let clock: any Clock
    private let threads: WorkerGroup
    private let state = Mutex(State())
    /// Counts the sets that lacked a key of the one before.
    private let generation = Atomic<UInt64>(0)
    /// Until when, in monotonic nanoseconds, nothing needs to be done about the age of the set.
    private let freshUntil = Atomic<UInt64>(0)

    init(_ place: Place, clock: any Clock, threads: WorkerGroup) {
        self.place = place
        self.clock = clock
        self.threads = threads
    }

    /// Gives the keys that may have signed a token to `done`: now, or from another thread when they had to be fetched.
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
            // The set is too old, or has no such key, and nothing newer can be had for now.
            if !isAllowed, !state.isFetching { return (answer, false) }
            state.waiting.append { [self] in
                done(self.state.withLock { self.answer(token, $0, clock.monotonicNanoseconds()) })
            }
            return (nil, isAllowed && Self.beginFetch(&state, now))
        }
        if mustFetch { startFetch() }
        if let ready { done(ready) }
    }

    /// Whether a token that `key` has signed is still believed. It takes no lock while the set is fresh.
    /// - Parameter known: the generation in which the key was found.
    func standing(of key: SigningKey, since known: UInt64) -> Standing {
        let now = clock.monotonicNanoseconds()
        if generation.load(ordering: .acquiring) == known, now < freshUntil.load(ordering: .relaxed) {
            return .believed
        }
        let (standing, mustFetch) = state.withLock { state -> (Standing, Bool) in
            let isAllowed = !state.isFetching && !Self.isWithin(Self.refreshSeconds, state.tried, now)
            let mustFetch = isAllowed && Self.beginFetch(&state, now)
            if !state.members.contains(where: { $0.key === key }) { return (.withdrawn, mustFetch) }
            return (isUsable(state, now) ? .believed : .unknown, mustFetch)
        }
        if mustFetch { startFetch() }
        return standing
    }

    /// Whether the set may be used without waiting for a newer one.
    private func isUsable(_ state: State, _ now: UInt64) -> Bool {
        // Where the newer one can't be had, waiting for it would stop everybody for nothing.
        Self.isWithin(state.failure == nil ? Self.staleSeconds : Self.keptSecondsMax, state.fetched, now)
    }

    private static func isWithin(_ seconds: UInt64, _ time: UInt64?, _ now: UInt64) -> Bool {
        guard let time else { return false }
        // Another thread may have looked at the clock later than this one.
        return now <= time || now - time < seconds * 1_000_000_000
    }

    private func answer(_ token: JSONWebToken, _ state: State, _ now: UInt64) -> Result<Candidates, Status> {
        guard Self.isWithin(Self.keptSecondsMax, state.fetched, now) else {
            let failure = state.failure ?? "they were not asked for yet"
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
        switch place {
        case .file(let path):
            guard let string = try TextFile.read(path) else { throw .notFound("\(path) is not there") }
            return string
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

/// What a token is believed for: a key that its issuer may withdraw.
struct TokenProof: Sendable {
    let keys: KeySet
    let key: SigningKey
    let generation: UInt64

    var standing: KeySet.Standing { keys.standing(of: key, since: generation) }
}
