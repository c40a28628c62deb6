/// The result of a write. Source: google.firestore.v1.WriteResult.
@usableFromInline package struct WriteResult: Sendable, Equatable {
    /// The document's update time after the write; nil for a delete.
    @usableFromInline package var updateTime: Timestamp?
    @usableFromInline package var transformResults: [Value]

    @inlinable package init(updateTime: Timestamp? = nil, transformResults: [Value] = []) {
        self.updateTime = updateTime
        self.transformResults = transformResults
    }
}
