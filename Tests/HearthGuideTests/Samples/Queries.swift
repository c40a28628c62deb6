import HearthFirestore

enum Queries {
    static func filters(_ db: Firestore) -> [Query] {
        // sample: filters
        let notes = db.collection("notes")
        let good = notes.whereField("stars", isGreaterThanOrEqualTo: 4)
        let home = notes.whereField("tags", arrayContains: "home")
        let some = notes.whereField("tags", arrayContainsAny: ["home", "garden"])
        let evas = notes.whereField("by.name", isEqualTo: "Eva").whereField("stars", isGreaterThan: 1)
        let named = notes.whereField(FieldPath.documentID(), in: ["a", "b"])
        // end
        return [good, home, some, evas, named]
    }

    static func either(_ db: Firestore) -> Query {
        // sample: or
        let either = db.collection("notes").whereFilter(
            Filter.orFilter([
                Filter.whereField("stars", isGreaterOrEqualTo: 5),
                Filter.andFilter([
                    Filter.whereField("tags", arrayContains: "home"), Filter.whereField("by.name", isEqualTo: "Eva"),
                ]),
            ]))
        // end
        return either
    }

    static func order(_ db: Firestore) -> [Query] {
        // sample: order
        let best = db.collection("notes").order(by: "stars", descending: true).order(by: "title").limit(to: 2)
        let last = db.collection("notes").order(by: "title").limit(toLast: 2)
        let middle = db.collection("notes").order(by: "stars").start(at: [2]).end(before: [5])
        // end
        return [best, last, middle]
    }

    static func pages(_ db: Firestore) async throws -> [[String]] {
        var pages: [[String]] = []
        // sample: pages
        let query = db.collection("notes").order(by: "title").limit(to: 2)
        var page = try await query.getDocuments()
        while let last = page.documents.last {
            pages.append(page.documents.map(\.documentID))
            page = try await query.start(afterDocument: last).getDocuments()
        }
        // end
        return pages
    }

    static func group(_ db: Firestore) -> Query {
        // sample: group
        let comments = db.collectionGroup("comments").whereField("by", isEqualTo: "Eva")
        // end
        return comments
    }
}

enum Aggregates {
    static func count(_ db: Firestore) async throws -> Int {
        // sample: count
        let answer = try await db.collection("notes").count.getAggregation(source: .server)
        print(answer.count)
        // end
        return answer.count.intValue
    }

    static func figures(_ db: Firestore) async throws -> (Double?, Double?) {
        // sample: figures
        let notes = db.collection("notes").whereField("tags", arrayContains: "home")
        let answer = try await notes.aggregate([.sum("stars"), .average("stars")]).getAggregation(source: .server)
        let sum = answer.get(.sum("stars")) as? Double
        let mean = answer.get(.average("stars")) as? Double  // nil when there is no note with stars
        // end
        return (sum, mean)
    }

    static func cached(_ db: Firestore) async throws -> Int {
        // sample: cached-count
        let answer = try await db.collection("notes").count.getAggregation(source: .cache)
        // end
        return answer.count.intValue
    }

    static func live(_ db: Firestore, _ show: @escaping @Sendable (String) -> Void) -> any ListenerRegistration {
        // sample: live-count
        let registration = db.collection("notes").count.addSnapshotListener { answer, _ in
            if let answer { show("\(answer.count) notes") }
        }
        // end
        return registration
    }
}
