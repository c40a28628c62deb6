internal import Dispatch
internal import Foundation
package import HearthModel

/// The named connection of a program to a Firebase project.
public final class FirebaseApp: Sendable, Hashable {
    package static let defaultName = "__FIRAPP_DEFAULT"

    private static let apps = Locked<[String: FirebaseApp]>([:])
    private static let endings = Locked<[@Sendable (FirebaseApp, @escaping @Sendable () -> Void) -> Void]>([])

    /// The app's name.
    public let name: String
    private let storedOptions: FirebaseOptions

    /// A copy of the app's options.
    public var options: FirebaseOptions { storedOptions.copy() as! FirebaseOptions }

    private init(name: String, options: FirebaseOptions) {
        self.name = name
        storedOptions = options.copy() as! FirebaseOptions
    }

    /// Configures the default app for the project in the environment: see `FirebaseOptions.defaultOptions()`. The
    /// program ends when there is none.
    public class func configure() {
        orTrap("FirebaseApp") { () throws(Status) in
            guard let options = FirebaseOptions.defaultOptions() else {
                throw .failedPrecondition(
                    "FirebaseApp.configure() found no project. Set GOOGLE_CLOUD_PROJECT or FIREBASE_CONFIG, put a "
                        + "google-services.json into the working directory, or call FirebaseApp.configure(options:).")
            }
            try add(name: defaultName, options: options)
        }
    }

    /// Configures the default app. The program ends when it is already configured or `options` has no project id.
    /// - Parameter options: must have a `projectID`. It is copied: later changes have no effect.
    public class func configure(options: FirebaseOptions) {
        orTrap("FirebaseApp") { () throws(Status) in try add(name: defaultName, options: options) }
    }

    /// Configures an app with a name. The program ends when the name is empty or in use, or `options` has no project
    /// id.
    /// - Parameters:
    ///   - name: the app's name, for `app(name:)`.
    ///   - options: must have a `projectID`. It is copied: later changes have no effect.
    public class func configure(name: String, options: FirebaseOptions) {
        orTrap("FirebaseApp") { () throws(Status) in
            if name == defaultName || name.isEmpty {
                throw .invalidArgument("App name cannot be empty, and not the default app's, \(defaultName).")
            }
            try add(name: name, options: options)
        }
    }

    package static func add(name: String, options: FirebaseOptions) throws(Status) {
        if (options.projectID ?? "").isEmpty {
            throw .invalidArgument("FirebaseOptions.projectID must be set to a valid project ID.")
        }
        let app = FirebaseApp(name: name, options: options)
        try apps.with { (apps) throws(Status) in
            if apps[name] != nil {
                throw .failedPrecondition(
                    name == defaultName
                        ? "Default app has already been configured." : "App named \(name) has already been configured.")
            }
            apps[name] = app
        }
    }

    /// The default app.
    /// - Returns: the app; nil before it is configured.
    @discardableResult
    public class func app() -> FirebaseApp? { app(name: defaultName) }

    /// The app with a name.
    /// - Parameter name: the name that was given to `configure(name:options:)`.
    /// - Returns: the app; nil when there is none.
    @discardableResult
    public class func app(name: String) -> FirebaseApp? { apps.with { $0[name] } }

    /// All apps by name; nil when there are none.
    public class var allApps: [String: FirebaseApp]? { apps.with { $0.isEmpty ? nil : $0 } }

    /// Adds the work of a product at the deletion of an app. Each product adds one closure, before its first instance.
    /// - Parameter end: removes the app's instances before it returns, and calls its second argument when they have
    ///   ended.
    package static func atDeletion(
        _ end: @escaping @Sendable (FirebaseApp, @escaping @Sendable () -> Void) -> Void
    ) {
        endings.with { $0.append(end) }
    }

    /// Ends the app's instances of all products and removes the app. When the call returns, the app's name and the
    /// instances' are free; the completion follows when the instances have ended.
    /// - Parameter completion: receives whether the app existed. It runs on a queue of the library.
    public func delete(_ completion: @escaping (Bool) -> Void) {
        let carried = Carried(completion)
        forget { carried.value($0) }
    }

    /// Ends the app's instances of all products and removes the app.
    /// - Returns: whether the app existed.
    @discardableResult
    nonisolated(nonsending) public func delete() async -> Bool {
        await withCheckedContinuation { continuation in forget { continuation.resume(returning: $0) } }
    }

    private func forget(_ completion: @escaping @Sendable (Bool) -> Void) {
        let removed = Self.apps.with { apps in
            guard apps[name] === self else { return false }
            apps[name] = nil
            return true
        }
        let ended = DispatchGroup()
        for end in Self.endings.with({ $0 }) {
            ended.enter()
            end(self) { ended.leave() }
        }
        Auth.forget(app: self)
        ended.notify(queue: .global()) { completion(removed) }
    }

    public static func == (left: FirebaseApp, right: FirebaseApp) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
