// sample: apple-database
import FirebaseCore
import FirebaseDatabase

final class ChannelViewModel {
    private let channel: DatabaseReference
    private var handle: DatabaseHandle?

    init(_ name: String, root: DatabaseReference = Database.database().reference()) {
        channel = root.child("channels").child(name)
    }

    func enter(as user: String, _ show: @escaping (String) -> Void) {
        handle = channel.child("lines").observe(.childAdded) { snapshot in
            guard let line = snapshot.value as? [String: Any] else { return }
            show("\(line["by"] as? String ?? "?"): \(line["body"] as? String ?? "")")
        }
        let presence = channel.child("present").child(user)
        presence.onDisconnectRemoveValue()
        presence.setValue(["since": ServerValue.timestamp()])
    }

    func say(_ body: String, by user: String) {
        channel.child("lines").childByAutoId().setValue(["by": user, "body": body])
        channel.child("count").runTransactionBlock { data in
            data.value = (data.value as? Int ?? 0) + 1
            return TransactionResult.success(withValue: data)
        }
    }

    func leave() {
        guard let handle else { return }
        channel.child("lines").removeObserver(withHandle: handle)
    }
}
// end
