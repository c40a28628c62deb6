import HearthFirestore

enum Transactions {
    static func batch(_ db: Firestore) async throws {
        // sample: batch
        let batch = db.batch()
        batch.setData(["title": "Plan"], forDocument: db.document("notes/plan"))
        batch.updateData(["notes": FieldValue.increment(Int64(1))], forDocument: db.document("users/eva"))
        batch.deleteDocument(db.document("drafts/plan"))
        try await batch.commit()
        // end
    }

    static func transaction(_ db: Firestore) async throws -> Int? {
        // sample: transaction
        let counter = db.document("counters/notes")
        let number = try await db.runTransaction { transaction, errorPointer in
            do {
                let present = try transaction.getDocument(counter).get("number") as? Int ?? 0
                transaction.setData(["number": present + 1], forDocument: counter)
                return present + 1
            } catch let error as NSError {
                errorPointer?.pointee = error
                return nil
            }
        }
        // end
        return number as? Int
    }

    static func refuse(_ db: Firestore) async throws {
        // sample: transaction-refuse
        let account = db.document("accounts/eva")
        _ = try await db.runTransaction { transaction, errorPointer in
            do {
                let credit = try transaction.getDocument(account).get("credit") as? Int ?? 0
                guard credit >= 10 else {
                    throw NSError(domain: "Notes", code: 1, userInfo: [NSLocalizedDescriptionKey: "Not enough credit"])
                }
                transaction.updateData(["credit": credit - 10], forDocument: account)
            } catch let error as NSError {
                errorPointer?.pointee = error
            }
            return nil
        }
        // end
    }

    static func parts(_ db: Firestore, _ lines: [String]) async throws {
        // sample: batches-in-parts
        for start in stride(from: 0, to: lines.count, by: 400) {
            let batch = db.batch()
            for number in start..<min(start + 400, lines.count) {
                batch.setData(["text": lines[number]], forDocument: db.document("lines/\(number)"))
            }
            try await batch.commit()
        }
        // end
    }
}
