/// What a `SocketChannel` uses instead of a descriptor in a simulation. The results of `receive` and `send` are those of
/// the system's calls: a count, or -1 with `errno`.
package protocol SimulatedSocket: AnyObject {
    /// From now on the simulation reports this channel's events.
    func started(_ channel: SocketChannel)
    /// 0 at the end of the input.
    func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int
    func send(_ bytes: UnsafeRawBufferPointer) -> Int
    func finishSending()
    func close()
}
