/// The condition on the stored document under which a write happens. Source: google.firestore.v1.Precondition.
@usableFromInline package enum Precondition: Sendable, Equatable {
    case none
    case exists(Bool)
    case updateTime(Timestamp)
}
