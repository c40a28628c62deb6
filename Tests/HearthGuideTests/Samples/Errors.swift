import HearthFirestore

enum Errors {
    static func handle(_ db: Firestore) async -> String {
        // sample: errors
        do {
            try await db.document("private/plan").setData(["title": "Plan"])
            return "done"
        } catch FirestoreErrorCode.permissionDenied {
            return "The rules don't let this user write here."
        } catch FirestoreErrorCode.unavailable {
            return "The server can't be reached."
        } catch {
            return "\(error.localizedDescription)"
        }
        // end
    }

    static func codes(_ error: any Error) -> String {
        // sample: codes
        let error = error as NSError
        if error.domain == FirestoreErrorDomain, let code = FirestoreErrorCode.Code(rawValue: error.code) {
            return "\(code): \(error.localizedDescription)"
        }
        // end
        return "another error"
    }

    static func log() {
        // sample: logging
        Firestore.enableLogging(true)
        // end
        Firestore.enableLogging(false)
    }
}
