import HearthModel
import HearthWire

/// Exact nearest-neighbour search over the results of a query. Source: google.firestore.v1.StructuredQuery.FindNearest.
enum NearestNeighbours {
    /// - Returns: at most `limit` results, the nearest first; equal distances in the order of names.
    static func search(
        _ query: NormalizedQuery, next: () throws(Status) -> QueryResult?
    ) throws(Status) -> [Neighbour] {
        guard let search = query.query.findNearest else { return [] }
        var best: [Neighbour] = []
        while let result = try next() {
            guard case .vector(let vector)? = try FieldsReader(result.document.fields).value(at: search.field),
                vector.count == search.vector.count
            else { continue }
            let distance = distance(vector, search)
            if let threshold = search.threshold {
                let isWithin = search.measure == .dotProduct ? distance >= threshold : distance <= threshold
                if !isWithin { continue }
            }
            insert(Neighbour(key: result.key, distance: distance), into: &best, search)
        }
        return best
    }

    static func distance(_ vector: [Double], _ search: Query.FindNearest) -> Double {
        switch search.measure {
        case .euclidean:
            return zip(vector, search.vector).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot()
        case .dotProduct:
            return dot(vector, search.vector)
        case .cosine:
            // One root and one division: with more, equal vectors would not be exactly 0 apart.
            let norms = (dot(vector, vector) * dot(search.vector, search.vector)).squareRoot()
            return 1 - dot(vector, search.vector) / norms
        }
    }

    private static func dot(_ lhs: [Double], _ rhs: [Double]) -> Double {
        zip(lhs, rhs).reduce(0) { $0 + $1.0 * $1.1 }
    }

    /// Keeps `best` sorted and no longer than the limit.
    private static func insert(_ result: Neighbour, into best: inout [Neighbour], _ search: Query.FindNearest) {
        var low = 0
        var high = best.count
        while low < high {
            let middle = (low + high) / 2
            if precedes(best[middle], result, search) { low = middle + 1 } else { high = middle }
        }
        guard low < search.limit else { return }
        best.insert(result, at: low)
        if best.count > search.limit { best.removeLast() }
    }

    private static func precedes(_ lhs: Neighbour, _ rhs: Neighbour, _ search: Query.FindNearest) -> Bool {
        let left = lhs.distance
        let right = rhs.distance
        if left.isNaN || right.isNaN {
            if left.isNaN != right.isNaN { return right.isNaN }
        } else if left != right {
            return search.measure == .dotProduct ? left > right : left < right
        }
        let leftPath = DocumentKey.toPathKey(lhs.key) ?? lhs.key
        let rightPath = DocumentKey.toPathKey(rhs.key) ?? rhs.key
        return UTF8Order.compare(leftPath, rightPath) < 0
    }
}

/// A result of a nearest-neighbour search. Its document is read again on demand: a thousand of them may take a
/// gigabyte.
struct Neighbour {
    var key: [UInt8]
    var distance: Double
}
