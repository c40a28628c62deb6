/// The end of a load's run.
enum LoadBound: Sendable {
    /// After a time; a first part is not counted.
    case seconds(Double, warmUp: Double)
    /// After a number of responses.
    case requests(Int)
}
