import CLinux

/// The memory of the process as the system sees it.
public enum ProcessMemory {
    /// Returns to the system what is free: the allocator keeps it, as it doesn't know that a burst is over. Takes
    /// milliseconds when there is much.
    public static func giveBack() { linux_malloc_trim() }
}
