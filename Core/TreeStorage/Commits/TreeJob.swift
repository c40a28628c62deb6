import HearthModel

/// The jobs of the writer's thread.
enum TreeJob: Sendable {
    case write(TreeRequest)
    case perform(@Sendable (TreeView) -> Void)
    case setIndexes([TreeIndexDefinition], @Sendable (Result<Void, Status>) -> Void)
    /// A slice of the work on indexes.
    case build
    /// A slice of the records of a large write.
    case stage(ticket: UInt64)
    /// A slice of the work after a large write.
    case settle
}
