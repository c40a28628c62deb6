import HearthFirestore

enum Aggregation {
    static func read(_ db: Firestore) async throws -> (Int, Double?) {
        // sample: aggregation-read
        let ratings = db.collection("restaurants/rome/ratings").whereField("rating", isGreaterThanOrEqualTo: 1)
        let fields: [AggregateField] = [.count(), .sum("rating"), .average("rating")]
        let answer = try await ratings.aggregate(fields).getAggregation(source: .server)
        let count = answer.count
        let average = answer.get(.average("rating")) as? Double  // nil when there are no ratings
        // end
        return (count.intValue, average)
    }

    static func increment(_ db: Firestore) async throws {
        // sample: aggregation-increment
        let batch = db.batch()
        batch.setData(["text": "Good soup"], forDocument: db.collection("restaurants/rome/reviews").document())
        batch.updateData(["reviews": FieldValue.increment(Int64(1))], forDocument: db.document("restaurants/rome"))
        try await batch.commit()
        // end
    }

    static func rate(_ db: Firestore, user: String, stars: Int) async throws {
        // sample: aggregation-transaction
        let restaurant = db.document("restaurants/rome")
        let rating = restaurant.collection("ratings").document(user)
        _ = try await db.runTransaction { transaction, errorPointer in
            do {
                let found = try transaction.getDocument(restaurant)
                let former = try transaction.getDocument(rating)
                let number = (found.get("numRatings") as? Int ?? 0) + (former.exists ? 0 : 1)
                let sum = (found.get("sumRatings") as? Int ?? 0) - (former.get("rating") as? Int ?? 0) + stars
                transaction.setData(["rating": stars], forDocument: rating)
                transaction.setData(
                    ["numRatings": number, "sumRatings": sum, "avgRating": Double(sum) / Double(number)],
                    forDocument: restaurant, merge: true)
            } catch let error as NSError {
                errorPointer?.pointee = error
            }
            return nil
        }
        // end
    }
}
