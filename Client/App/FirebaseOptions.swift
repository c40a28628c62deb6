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
    public init(googleAppID: String, gcmSenderID: String) {
        self.googleAppID = googleAppID
        self.gcmSenderID = gcmSenderID
        bundleID = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
    }

    /// Options with all that a program on Linux needs. Apple's library has no such initializer.
    public convenience init(projectID: String) {
        self.init(googleAppID: "", gcmSenderID: "")
        self.projectID = projectID
    }

    /// Reads a `GoogleService-Info.plist` or a `google-services.json` of the Firebase console. nil when the file cannot
    /// be read or contains no project.
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

/// The members of the console's two kinds of file.
package struct OptionsFile {
    package var projectID: String?
    package var googleAppID: String?
    var gcmSenderID: String?
    package var apiKey: String?
    var bundleID: String?
    var clientID: String?
    package var databaseURL: String?
    var storageBucket: String?

    /// nil when the data is neither kind of file, or contains no project.
    package static func parse(_ data: Data) -> OptionsFile? {
        let file = json(data) ?? plist(data)
        return file?.projectID == nil ? nil : file
    }

    private static func plist(_ data: Data) -> OptionsFile? {
        guard let list = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any] else {
            return nil
        }
        return OptionsFile(
            projectID: list["PROJECT_ID"] as? String, googleAppID: list["GOOGLE_APP_ID"] as? String,
            gcmSenderID: list["GCM_SENDER_ID"] as? String, apiKey: list["API_KEY"] as? String,
            bundleID: list["BUNDLE_ID"] as? String, clientID: list["CLIENT_ID"] as? String,
            databaseURL: list["DATABASE_URL"] as? String, storageBucket: list["STORAGE_BUCKET"] as? String)
    }

    private static func json(_ data: Data) -> OptionsFile? {
        guard let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else { return nil }
        guard let info = object["project_info"] as? [String: Any] else { return webConfiguration(object) }
        let client = (object["client"] as? [[String: Any]])?.first
        let app = client?["client_info"] as? [String: Any]
        return OptionsFile(
            projectID: info["project_id"] as? String, googleAppID: app?["mobilesdk_app_id"] as? String,
            gcmSenderID: info["project_number"] as? String,
            apiKey: (client?["api_key"] as? [[String: Any]])?.first?["current_key"] as? String,
            databaseURL: info["firebase_url"] as? String, storageBucket: info["storage_bucket"] as? String)
    }

    /// The format of web apps and of `FIREBASE_CONFIG`.
    static func webConfiguration(_ object: [String: Any]) -> OptionsFile {
        OptionsFile(
            projectID: object["projectId"] as? String, googleAppID: object["appId"] as? String,
            gcmSenderID: object["messagingSenderId"] as? String, apiKey: object["apiKey"] as? String,
            databaseURL: object["databaseURL"] as? String, storageBucket: object["storageBucket"] as? String)
    }
}

/// Searches for a project's id in the files and variables of Firebase's tools.
package struct OptionsSearch {
    private var environment: [String: String]
    private var folders: [String]

    package init(environment: [String: String], folders: [String]) {
        self.environment = environment
        self.folders = folders
    }

    package func options() -> FirebaseOptions? {
        if let configuration = environment["FIREBASE_CONFIG"], !configuration.isEmpty {
            return configuration.hasPrefix("{")
                ? parse(Data(configuration.utf8)) : FirebaseOptions(contentsOfFile: configuration)
        }
        for name in ["GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"] {
            if let project = environment[name], !project.isEmpty { return FirebaseOptions(projectID: project) }
        }
        for folder in folders {
            for name in ["GoogleService-Info.plist", "google-services.json"] {
                if let options = FirebaseOptions(contentsOfFile: "\(folder)/\(name)") { return options }
            }
        }
        return folders.lazy.compactMap { firebaserc(in: $0) }.first
    }

    private func parse(_ data: Data) -> FirebaseOptions? {
        guard let file = OptionsFile.parse(data), let projectID = file.projectID else { return nil }
        let options = FirebaseOptions(googleAppID: file.googleAppID ?? "", gcmSenderID: file.gcmSenderID ?? "")
        options.projectID = projectID
        options.apiKey = file.apiKey
        options.databaseURL = file.databaseURL
        options.storageBucket = file.storageBucket
        return options
    }

    private func firebaserc(in folder: String) -> FirebaseOptions? {
        guard let data = FileManager.default.contents(atPath: "\(folder)/.firebaserc"),
            let object = try? JSONSerialization.jsonObject(with: data) as? [String: Any],
            let projects = object["projects"] as? [String: Any], let project = projects["default"] as? String
        else { return nil }
        return FirebaseOptions(projectID: project)
    }
}
