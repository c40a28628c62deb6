/// The expected cost of a read.
enum ReadCost {
    /// The cost of its response.
    case answer
    /// Small or large: the first milliseconds show that.
    case unknown
    case large
}
