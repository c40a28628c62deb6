import FirebaseAuth
import FirebaseDatabase
import FirebaseDatabaseSwift
import FirebaseFirestore
import FirebaseFirestoreSwift

// Code of the years in which `Codable` was a module of its own, and of programs that use both products. Both have a
// `@ServerTimestamp`, as on Apple platforms: it is named with its module there, too.

// sample: apple-both
struct Message: Codable {
    @DocumentID var id: String?
    var body: String
    @FirebaseFirestore.ServerTimestamp var sent: Timestamp?
}

struct Beat: Codable, Equatable {
    var name: String
    @FirebaseDatabase.ServerTimestamp var at: Date?
}
// end

enum OlderCode {
    static func copy(_ message: DocumentReference, to beat: DatabaseReference) async throws -> Beat {
        let body = try await message.getDocument(as: Message.self).body
        return try await withCheckedThrowingContinuation { continuation in
            do {
                try beat.setValue(from: Beat(name: body)) { error in
                    if let error { return continuation.resume(throwing: error) }
                    beat.getData { _, snapshot in
                        continuation.resume(with: Result { try snapshot!.data(as: Beat.self) })
                    }
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    static func user(_ app: FirebaseApp, _ token: String) async throws -> String {
        // sample: apple-auth
        let result = try await Auth.auth(app: app).signIn(withCustomToken: token)
        let user = result.user.uid
        // end
        return user
    }
}
