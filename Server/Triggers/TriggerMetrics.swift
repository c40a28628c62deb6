import HearthHost

/// The triggers' part of `/metrics`.
extension TriggerService {
    package func write(to string: inout MetricsWriter) {
        let definitions = definitions
        if definitions.isEmpty { return }
        let totals = totals()
        let all = definitions.map {
            (labels: [("trigger", $0.name)], totals: totals[$0.id] ?? TriggerTotals(), figures: journal.figures($0.id))
        }
        string.family("hearth_trigger_events_total", .counter, "Events that are not sent any more.")
        for (labels, _, figures) in all {
            for (result, count) in [
                ("delivered", figures.delivered), ("dropped", figures.dropped), ("dead", figures.dead),
            ] {
                string.sample("hearth_trigger_events_total", labels + [("result", result)], count)
            }
        }
        string.family("hearth_trigger_attempts_total", .counter, "Requests to the endpoints of triggers.")
        for (labels, _, figures) in all {
            for (result, count) in [
                ("ok", figures.attemptsOK), ("status", figures.attemptsStatus),
                ("timeout", figures.attemptsTimeout), ("unreachable", figures.attemptsUnreachable),
            ] {
                string.sample("hearth_trigger_attempts_total", labels + [("result", result)], count)
            }
        }
        string.family("hearth_trigger_pending", .gauge, "Events that are still to be delivered.")
        for (labels, totals, _) in all { string.sample("hearth_trigger_pending", labels, totals.pending) }
        string.family(
            "hearth_trigger_oldest_pending_seconds", .gauge, "The age of the oldest of them.")
        let now = clock.now().microseconds
        for (labels, totals, _) in all {
            let age = totals.oldest.map { Double(max(0, now - $0)) / 1e6 } ?? 0
            string.sample("hearth_trigger_oldest_pending_seconds", labels, age)
        }
        string.family(
            "hearth_trigger_delivery_seconds", .histogram, "From the commit to the acknowledgement of its event.")
        for (labels, _, figures) in all {
            string.histogram(
                "hearth_trigger_delivery_seconds", labels, bounds: TriggerJournal.boundsSeconds, figures.delivery,
                sum: figures.deliverySeconds)
        }
    }
}
