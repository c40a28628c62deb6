import HearthDatabase
import Synchronization

/// A channel of the chat: its lines and who is present, live.
///
/// No code here checks for a network. Lines are in the cache on this device before `say` returns; the library sends them in
/// order when it can, also in a later run of the program.
final class Channel: Sendable {
    /// What happens, in the order in which it happens.
    enum Event: Sendable {
        case line(by: String, body: String)
        case arrived(String)
        case left(String)
        case connection(isOnline: Bool)
        /// The server refused a line of this program, which is removed again.
        case refused(body: String, reason: String)
    }

    /// As many of the newest lines are shown at the start.
    private static let lineCount: UInt = 20
    /// The time for which the end of the program waits for the server's answer to what was written.
    private static let patience = Duration.seconds(2)

    /// End with `leave`.
    let events: AsyncStream<Event>

    private let user: String
    private let app: FirebaseApp
    private let database: Database
    private let lines: DatabaseReference
    private let present: DatabaseReference
    private let continuation: AsyncStream<Event>.Continuation

    /// Opens the cache and begins to connect.
    init(_ options: Options) {
        user = options.user
        // The cache's folder is named after the app: each user of this device has one.
        FirebaseApp.configure(name: "chat-\(user)", options: FirebaseOptions(projectID: options.project))
        app = FirebaseApp.app(name: "chat-\(user)")!
        database = Database.database(app: app, url: "http://\(options.server)?ns=\(options.project)-default-rtdb")
        database.isPersistenceEnabled = true
        database.callbackQueue = DispatchQueue(label: "chat.database")
        let channel = database.reference(withPath: "channels").child(options.channel)
        lines = channel.child("lines")
        present = channel.child("present")
        (events, continuation) = AsyncStream.makeStream()
        observe()
    }

    private func observe() {
        let (continuation, user) = (continuation, user)
        lines.queryLimited(toLast: Self.lineCount).observe(.childAdded) { line in
            guard let body = line.childSnapshot(forPath: "body").value as? String,
                let author = line.childSnapshot(forPath: "by").value as? String
            else { return }
            continuation.yield(.line(by: author, body: body))
        }
        present.observe(.childAdded) { if $0.key != user { continuation.yield(.arrived($0.key)) } }
        present.observe(.childRemoved) { if $0.key != user { continuation.yield(.left($0.key)) } }
        let own = present.child(user)
        database.reference(withPath: ".info/connected").observe(.value) { snapshot in
            let isOnline = snapshot.value as? Bool == true
            if isOnline {
                // First the order to the server to remove the entry when it loses this client, in whatever way; then the
                // entry. The other way round it would stay when the connection breaks between the two.
                own.onDisconnectRemoveValue()
                own.setValue(["since": ServerValue.timestamp()])
            }
            continuation.yield(.connection(isOnline: isOnline))
        }
    }

    /// Adds a line. It shows at once, also offline.
    func say(_ body: String) {
        let line: [String: Any] = ["by": user, "body": body, "at": ServerValue.timestamp()]
        lines.childByAutoId().setValue(line) { [continuation] error, _ in
            guard let error else { return }
            continuation.yield(.refused(body: body, reason: error.localizedDescription))
        }
    }

    func goOffline() { database.goOffline() }

    func goOnline() { database.goOnline() }

    /// Leaves the channel, and closes the cache.
    /// - Returns: whether the server has all lines; what it does not have is sent by the next run.
    func leave() async -> Bool {
        let (answers, answered) = AsyncStream<Bool>.makeStream()
        // Writes are answered in their order: this one after all lines.
        present.child(user).removeValue { error, _ in answered.yield(error == nil) }
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            answered.yield(false)
        }
        let isDone = await answers.first { _ in true } ?? false
        timer.cancel()
        // What closing the connection shows is no news.
        continuation.finish()
        await app.delete()
        return isDone
    }
}
