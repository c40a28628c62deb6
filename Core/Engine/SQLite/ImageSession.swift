import HearthConcurrency
import HearthEngine
import HearthModel

/// The images of all databases of a folder, for one backup.
///
/// Those that are open when it begins get theirs at one moment, as nearly as possible: their stores hold, and are released
/// together. One that is closed then has no commits before somebody opens it, and gets its image then, before it is written
/// or deleted, or when the backup comes to it.
///
/// `@unchecked Sendable`: `state` is guarded by its monitor.
package final class ImageSession: @unchecked Sendable {
    /// A database and its file, relative to the folder.
    package struct Member: Sendable {
        package var name: DatabaseName
        package var file: String
    }

    private let provider: SQLiteStoreProvider
    private let monitor = Monitor()
    private var open: [Open] = []
    /// Those without an image yet.
    private var closed: [DatabaseFileName: DatabaseName] = [:]
    /// The names of those that were closed at the beginning, the last one first: `next` takes them from the end.
    private var order: [DatabaseFileName]
    private var isEnded = false
    /// Images that were made because somebody has opened or deleted the database.
    private var madeEarly = 0

    /// Images that a session keeps open because of others, each with two file descriptors.
    static let earlyMax = 512

    struct Open: Sendable {
        var name: DatabaseName
        var store: LoggedStore?
        var request: ImageRequest
    }

    init(_ provider: SQLiteStoreProvider, open: [(DatabaseName, LoggedStore)], closed: [DatabaseName]) {
        self.provider = provider
        self.open = open.map { Open(name: $0.0, store: $0.1, request: ImageRequest(holds: true)) }
        self.closed = Dictionary(closed.map { (DatabaseFileName($0), $0) }) { first, _ in first }
        order = closed.map { (name: $0.string, file: DatabaseFileName($0)) }.sorted { $0.name > $1.name }.map(\.file)
    }

    deinit { end() }

    // MARK: The moment

    /// Asks the stores that are open to hold.
    package func hold() {
        for member in holding { member.store?.begin(member.request) }
    }

    /// Waits until they do.
    package func waitUntilHeld(until deadline: MonotonicTime) {
        for member in holding { _ = member.request.waitUntilReady(until: deadline) }
    }

    /// Ends the hold: what was committed by now is in the images.
    package func release() {
        for member in holding { member.store?.release(member.request) }
    }

    /// Those that were open when the session began: one that was opened since has begun with its image.
    private var holding: [Open] { monitor.withLock { open.filter(\.request.holds) } }

    /// Waits for the images of the stores that were open.
    /// - Parameter check: called several times a second; what it throws ends the wait.
    /// - Throws: why one of them can't be made, with its name.
    package func waitForImages(
        until deadline: MonotonicTime, check: () throws(Status) -> Void
    ) throws(Status) {
        for member in monitor.withLock({ open }) {
            while !member.request.hasEnded(within: 200) {
                try check()
                if MonotonicTime.now >= deadline {
                    throw .unavailable("The disk is too slow: \(member.name) could not be written to its file in time.")
                }
            }
            if let failure = member.request.failure, !isClosedSince(member) { throw Self.named(member.name, failure) }
        }
    }

    /// One that was closed in the meantime is made an image of later: it has no commits until it is opened.
    private func isClosedSince(_ member: Open) -> Bool {
        guard member.store?.isOpen == false else { return false }
        monitor.withLock {
            open.removeAll { $0.request === member.request }
            let name = DatabaseFileName(member.name)
            closed[name] = member.name
            order.append(name)
        }
        return true
    }

    /// The time between the first and the last image of the stores that were open.
    package var spreadMilliseconds: Int {
        let moments = monitor.withLock { open }.filter { $0.store != nil }.compactMap(\.request.boundary?.nanoseconds)
        guard let first = moments.min(), let last = moments.max() else { return 0 }
        return Int((last - first) / 1_000_000)
    }

    // MARK: The images

    /// The next database's image, which the caller closes.
    /// - Throws: why there is none, with the database's name.
    package func next(
        check: () throws(Status) -> Void
    ) throws(Status) -> (member: Member, image: any StoreImage)? {
        while true {
            if let member = monitor.withLock({ open.isEmpty ? nil : open.removeFirst() }) {
                do throws(Status) {
                    return (Self.member(member.name), try image(member, check))
                } catch {
                    if isClosedSince(member) { continue }
                    throw error
                }
            }
            guard let (name, database) = nextClosed() else { return nil }
            // It is in `open` then, unless it was deleted before the backup began.
            provider.makeImage(name, database, for: self)
        }
    }

    private func nextClosed() -> (DatabaseFileName, DatabaseName)? {
        monitor.withLock {
            // Those that were opened or deleted meanwhile are in `order` only.
            while let name = order.last {
                if let database = closed[name] { return (name, database) }
                order.removeLast()
            }
            return nil
        }
    }

    private func image(_ member: Open, _ check: () throws(Status) -> Void) throws(Status) -> any StoreImage {
        while true {
            try check()
            let found: (any StoreImage)?
            do throws(Status) {
                found = try member.request.wait(until: MonotonicTime.now.advanced(milliseconds: 200))
            } catch {
                throw Self.named(member.name, error)
            }
            if let found { return found }
        }
    }

    private static func named(_ name: DatabaseName, _ status: Status) -> Status {
        Status(status.code, "\(name.string): \(status.message)")
    }

    private static func member(_ name: DatabaseName) -> Member {
        let file = DatabaseFileName(name)
        return Member(name: name, file: "\(file.folder)/\(file.file)\(DatabaseFileName.suffix)")
    }

    /// Ends the session; images that were not taken are closed.
    package func end() {
        let left = monitor.withLock { () -> [Open]? in
            if isEnded { return nil }
            isEnded = true
            closed = [:]
            defer { open = [] }
            return open
        }
        guard let left else { return }
        provider.sessionEnded(self)
        for member in left {
            if let store = member.store {
                store.cancel(member.request)
            } else {
                member.request.end(.failure(.unavailable("The backup was ended.")))
            }
        }
    }

    // MARK: For the provider

    /// Whether the database has to get its image before it is written or deleted.
    func wants(_ name: DatabaseFileName) -> Bool { monitor.withLock { closed[name] != nil } }

    /// The database was deleted before the session.
    func drop(_ name: DatabaseFileName) { monitor.withLock { closed[name] = nil } }

    /// Takes a database over: from here on its image is that of the request.
    /// - Parameter store: the store that makes it; nil when the request has ended.
    /// - Returns: the request; nil when the image is not wanted.
    func take(_ name: DatabaseFileName, _ store: LoggedStore?, isEarly: Bool) -> ImageRequest? {
        monitor.withLock {
            guard let database = closed.removeValue(forKey: name) else { return nil }
            let request = ImageRequest(holds: false)
            if isEarly { madeEarly += 1 }
            if madeEarly > Self.earlyMax {
                request.end(
                    .failure(
                        .resourceExhausted(
                            "More than \(Self.earlyMax) databases were opened while the backup was under way.")))
            }
            open.append(Open(name: database, store: store, request: request))
            return request
        }
    }
}
