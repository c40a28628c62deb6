public import Foundation

/// The properties of an app's project. On Linux only `projectID` is used, and `databaseURL` for the Realtime Database.
/// The other properties exist for source compatibility.
public final class FirebaseOptions: NSObject, NSCopying, @unchecked Sendable {
    // As in Apple's class, all properties are set before the app is configured, and copied then. Later changes have no
    // effect.

    /// The app's id; not used on Linux.
    public var googleAppID: String
    /// Not used on Linux.
    public var gcmSenderID: String
    /// The project's id.
    public var projectID: String?
    /// Not used on Linux.
    public var apiKey: String?
    /// Not used on Linux.
    public var bundleID: String
    /// Not used on Linux.
    public var clientID: String?
    /// The URL of the Realtime Database.
    public var databaseURL: String?
    /// Not used on Linux.
    public var storageBucket: String?
    /// Not used on Linux.
    public var appGroupID: String?

    /// Options without a project id.
    /// - Parameters:
    ///   - googleAppID: the app's id; not used on Linux, may be empty.
    ///   - gcmSenderID: not used on Linux, may be empty.
    public init(googleAppID: String, gcmSenderID: String) {
        self.googleAppID = googleAppID
        self.gcmSenderID = gcmSenderID
        bundleID = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    }

    /// Options with all that a program on Linux needs. Apple's library has no such initializer.
    /// - Parameter projectID: the project's id, for example `demo`. Must not be empty when an app is configured with
    ///   it.
    public convenience init(projectID: String) {
        self.init(googleAppID: "", gcmSenderID: "")
        self.projectID = projectID
    }

    /// Reads a `GoogleService-Info.plist` or a `google-services.json` of the Firebase console. nil when the file cannot
    /// be read or contains no project.
    /// - Parameter path: the path of the file.
    public convenience init?(contentsOfFile path: String) {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        guard let found = OptionsFile.parse(data) else { return nil }
        self.init(googleAppID: found.googleAppID ?? "", gcmSenderID: found.gcmSenderID ?? "")
        projectID = found.projectID
        apiKey = found.apiKey
        clientID = found.clientID
        databaseURL = found.databaseURL
        storageBucket = found.storageBucket
        if let bundleID = found.bundleID { self.bundleID = bundleID }
    }

    /// The options of the environment; nil when there is no project. The first of these with a project is used:
    /// - `FIREBASE_CONFIG`: a JSON object with `projectId`, or the path of a file with one,
    /// - `GOOGLE_CLOUD_PROJECT`, `GCLOUD_PROJECT`: the project's id,
    /// - `GoogleService-Info.plist` or `google-services.json`, next to the executable or in the working directory,
    /// - the default project of `.firebaserc` in the working directory.
    /// - Returns: the options; nil when no project was found.
    public class func defaultOptions() -> FirebaseOptions? {
        OptionsSearch(
            environment: ProcessInfo.processInfo.environment,
            folders: [Bundle.main.bundlePath, FileManager.default.currentDirectoryPath]
        ).options()
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = FirebaseOptions(googleAppID: googleAppID, gcmSenderID: gcmSenderID)
        copy.projectID = projectID
        copy.apiKey = apiKey
        copy.bundleID = bundleID
        copy.clientID = clientID
        copy.databaseURL = databaseURL
        copy.storageBucket = storageBucket
        copy.appGroupID = appGroupID
        return copy
    }
}
