import HearthFirestore

// hearth-front-page: the newest stories out of a bundle, which is loaded into the cache without a read at the database.
//
//     hearth-front-page [--server HOST:PORT] [--offline]
//
// With --offline nothing is fetched: the cache on this device has what an earlier run has loaded.

/// The stories of the bundle `front-page`, which the server makes as its hearth.json says.
struct FrontPage {
    private static let bundle = "front-page"
    /// The name that the bundle gives its query.
    private static let query = "latest"

    private let db: Firestore
    private let server: String

    /// - Parameter server: host and port.
    init(server: String) throws {
        let parts = server.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]), (1...65535).contains(port) else {
            throw Misuse(errorDescription: "--server needs HOST:PORT, but got \(server).")
        }
        FirebaseApp.configure(name: "front-page", options: FirebaseOptions(projectID: "demo-hearth"))
        db = Firestore.firestore(app: FirebaseApp.app(name: "front-page")!)
        db.useEmulator(withHost: String(parts[0]), port: port)
        self.server = server
    }

    /// Fetches the bundle over HTTP and fills the cache with it. A bundle that the cache has already changes nothing.
    /// - Returns: the number of documents in it.
    func load() async throws -> Int {
        guard let url = URL(string: "http://\(server)/bundles/\(Self.bundle)") else {
            throw Misuse(errorDescription: "\(server) is no server's address.")
        }
        return try await db.loadBundle(from: url).documentsLoaded
    }

    /// The headlines of the bundle's query, the latest first. Only the cache is asked.
    func headlines() async throws -> [String] {
        guard let latest = await db.getQuery(named: Self.query) else {
            throw Misuse(errorDescription: "The cache has no bundle yet: run without --offline first.")
        }
        return try await latest.getDocuments(source: .cache).documents.map { story in
            story.get("headline") as? String ?? story.documentID
        }
    }

    /// Closes the cache.
    func close() async throws { try await db.terminate() }
}

/// What is wrong with the command line, or with the order of commands.
struct Misuse: LocalizedError {
    var errorDescription: String?
}

do {
    var arguments = CommandLine.arguments.dropFirst()
    var (server, isOffline) = ("127.0.0.1:8080", false)
    while let argument = arguments.popFirst() {
        switch argument {
        case "--offline": isOffline = true
        case "--server": server = arguments.popFirst() ?? ""
        default: throw Misuse(errorDescription: "Usage: hearth-front-page [--server HOST:PORT] [--offline]")
        }
    }
    let page = try FrontPage(server: server)
    if !isOffline { print("\(try await page.load()) documents loaded") }
    for headline in try await page.headlines() { print("- \(headline)") }
    try await page.close()
} catch {
    FileHandle.standardError.write(Data("hearth-front-page: \(error.localizedDescription)\n".utf8))
    exit(1)
}
