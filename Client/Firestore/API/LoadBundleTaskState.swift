/// The state of loading a bundle.
public enum LoadBundleTaskState: Int, Sendable {
    /// The loading failed.
    case error = 0
    /// The loading continues.
    case inProgress = 1
    /// The loading is complete.
    case success = 2
}
