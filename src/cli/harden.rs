//! What keeps keys inside this process.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Switches core dumps off, for this process and its children, and keeps other processes of the user from looking into
/// its memory. First of all, before a key is read. A system that refuses is no reason not to run.
pub(super) fn harden() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    // The limit does not count where the kernel pipes cores to a program (core(5)); this does.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Says a panic as every other failure is said, and where to take it. The message is the panic's own, which holds no key:
/// keys have no text that could be printed.
pub(super) fn on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let place = panic
            .location()
            .map_or_else(String::new, |place| format!(" ({}:{})", place.file(), place.line()));
        super::voice::last_words(
            &format!(
                "a bug in sift {}: {}{place}",
                env!("CARGO_PKG_VERSION"),
                message.unwrap_or("no message")
            ),
            &[("tip", "please report it, with the command line and what stood above".to_owned())],
        );
    }));
}
