public import HearthApp
import Foundation
import HearthModel
import HearthTree

extension Database {
    private struct InstanceName: Hashable {
        var app: ObjectIdentifier
        var location: DatabaseLocation
    }

    private static let instances = Locked<[InstanceName: Database]>([:])

    /// The default app's database: at the URL of its options, or else the project's default one,
    /// `https://PROJECT-default-rtdb.firebaseio.com`.
    ///
    /// If `FIREBASE_DATABASE_EMULATOR_HOST` has the form `host:port`, all databases are at that server, without TLS.
    /// The program ends when the default app is not configured.
    /// - Returns: the same object at each call until the app is deleted.
    public class func database() -> Database { database(app: defaultApp()) }

    /// The default app's database at a URL. The program ends when the default app is not configured.
    /// - Parameter url: `https://NAMESPACE.firebaseio.com`, `https://NAMESPACE.REGION.firebasedatabase.app` or
    ///   `http://HOST:PORT?ns=NAMESPACE`, without a path. Any other URL ends the program.
    /// - Returns: the same object at each call with the same database until the app is deleted.
    public class func database(url: String) -> Database { database(app: defaultApp(), url: url) }

    /// An app's database: at the URL of its options, or else the project's default one, as `database()`.
    /// - Parameter app: a configured app.
    /// - Returns: the same object at each call with the same app until the app is deleted.
    public class func database(app: FirebaseApp) -> Database {
        orTrap { () throws(Status) in
            try instance(app: app, url: try url(of: app.options), makeDriver: SocketDriver.make)
        }
    }

    /// An app's database at a URL.
    /// - Parameters:
    ///   - app: a configured app.
    ///   - url: `https://NAMESPACE.firebaseio.com`, `https://NAMESPACE.REGION.firebasedatabase.app` or
    ///     `http://HOST:PORT?ns=NAMESPACE`, without a path. Any other URL ends the program.
    /// - Returns: the same object at each call with the same app and database until the app is deleted.
    public class func database(app: FirebaseApp, url: String) -> Database {
        orTrap { () throws(Status) in try instance(app: app, url: url, makeDriver: SocketDriver.make) }
    }

    private class func defaultApp() -> FirebaseApp {
        orTrap { () throws(Status) in
            guard let app = FirebaseApp.app() else {
                throw .failedPrecondition(
                    "The default FirebaseApp is not configured: call FirebaseApp.configure() before using Database.")
            }
            return app
        }
    }

    static func allInUse() -> [Repository] { instances.with { Array($0.values) }.compactMap(\.startedRepository) }

    static func url(of options: FirebaseOptions) throws(Status) -> String {
        if let url = options.databaseURL, !url.isEmpty { return url }
        guard let project = options.projectID, !project.isEmpty else {
            throw .failedPrecondition(
                "There is no database's URL: set FirebaseOptions.databaseURL or projectID, or call database(url:).")
        }
        return "https://\(project)-default-rtdb.firebaseio.com"
    }

    /// - Parameter environment: `FIREBASE_DATABASE_EMULATOR_HOST` moves every database to that server.
    static func instance(
        app: FirebaseApp, url: String, makeDriver: @escaping Repository.MakeDriver,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(Status) -> Database {
        var location = try DatabaseLocation(url)
        guard location.path.isRoot else {
            throw .invalidArgument(
                "The database URL \"\(url)\" must be that of a database's root, but has the path \(location.path).")
        }
        if let emulator = environment["FIREBASE_DATABASE_EMULATOR_HOST"], !emulator.isEmpty {
            try location.move(to: emulator)
        }
        _ = endsWithApp
        return instances.with { instances in
            let name = InstanceName(app: ObjectIdentifier(app), location: location)
            if let database = instances[name] { return database }
            let database = Database(app: app, location: location, makeDriver: makeDriver)
            instances[name] = database
            return database
        }
    }

    /// Read once per process.
    private static let endsWithApp: Void = FirebaseApp.atDeletion { app, completion in
        let removed = instances.with { instances in
            let removed = instances.filter { $0.key.app == ObjectIdentifier(app) }
            for name in removed.keys { instances[name] = nil }
            return removed
        }
        let ended = DispatchGroup()
        for database in removed.values {
            ended.enter()
            database.close { ended.leave() }
        }
        ended.notify(queue: .global(), execute: completion)
    }
}
