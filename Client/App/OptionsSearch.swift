internal import Foundation

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
