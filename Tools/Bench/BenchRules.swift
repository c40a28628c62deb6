/// Typical security rules of applications: the permitted writers, and the required fields of a document.
enum BenchRules {
    /// Twenty conditions, all of which hold for the bench's documents.
    static let string: String = {
        let fields = (0..<5).map { "request.resource.data.f\($0) is int && request.resource.data.f\($0) > 0" }
        return """
            rules_version = '2';
            service cloud.firestore {
              match /databases/{db}/documents {
                function isSignedIn() { return request.auth != null && request.auth.uid == 'alice'; }
                match /work/{id} {
                  allow read: if isSignedIn();
                  allow write: if isSignedIn() && request.auth.token.email_verified == true
                    && request.resource.data.keys().hasAll(['f0', 'f1', 'f2', 'f3', 'f4', 'payload'])
                    && request.resource.data.keys().hasOnly(['f0', 'f1', 'f2', 'f3', 'f4', 'payload'])
                    && request.resource.data.payload is string && request.resource.data.payload.size() < 1000
                    && id.size() > 1 && id.matches('d[0-9]+') && request.time != null
                    && \(fields.joined(separator: " && "));
                }
              }
            }
            """
    }()

    /// An unsigned token, as a server for local development takes it:
    /// `{"sub": "alice", "email_verified": true}`.
    static let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImVtYWlsX3ZlcmlmaWVkIjp0cnVlfQ."
}
