// sample: readme-database
import HearthDatabase  // docs/guide/database.md

// end

enum ReadmeDatabase {
    static func run() async throws {
        // more: readme-database
        FirebaseApp.configure(options: FirebaseOptions(projectID: "demo"))
        let database = Database.database(url: "http://127.0.0.1:8080?ns=demo-default-rtdb")
        try await database.reference().child("users/eva").setValue(["name": "Eva", "age": 41] as [String: Any])
        // end
    }
}
