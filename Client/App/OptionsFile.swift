package import Foundation

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
