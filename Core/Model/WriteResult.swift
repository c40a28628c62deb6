/// The result of a write. Source: google.firestore.v1.WriteResult.
package struct WriteResult: Sendable, Equatable {
    /// The document's update time after the write; nil for a delete.
    package var updateTime: Timestamp?
    package var transformResults: [Value]

    @inlinable package init(updateTime: Timestamp? = nil, transformResults: [Value] = []) {
        self.updateTime = updateTime
        self.transformResults = transformResults
    }
}
