import HearthModel

/// Receives the events of a location. All calls are made on the loop of the listen.
protocol ListenReceiver: AnyObject {
    func listen(_ listen: RealtimeSubscription, changed push: RealtimePush)
    /// Changes were lost: all data must be loaded.
    func listenIsStale(_ listen: RealtimeSubscription)
    /// The listen cannot continue.
    func listen(_ listen: RealtimeSubscription, failed status: Status)
}
