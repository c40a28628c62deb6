import HearthNetwork

/// A client's connection that does what chance wants.
protocol TrafficClient: AnyObject {
    var isClosed: Bool { get }
    /// How many exchanges or messages have not ended.
    var openCount: Int { get }
    /// Begins an exchange, or something like it.
    func begin()
    /// Goes on with one thing: sends a part, pauses, cancels, changes a window.
    func act()
    /// From now on nothing may wait: all parts are sent, and everything is read.
    func hurry()
    /// Ends the connection at once, whatever is open.
    func close()
}
