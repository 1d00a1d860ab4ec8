//! The tasks of a queue that a run asks about: where an answer ends one, both go into the store together.

use super::super::outcome::Outcome;
use super::super::packed::pack;
use crate::provider::Role;
use crate::store::{Completed, TaskId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Tasks, by the number of their [`Arrival`](crate::enrich::Arrival). Shared by who sends arrivals and the lanes, which all
/// run on one thread; borrowed for a look alone.
#[derive(Debug, Clone, Default)]
pub struct Tasks(Rc<RefCell<HashMap<u32, TaskId>>>);

impl Tasks {
    /// Notes a task; before its arrival is sent.
    pub fn put(&self, arrival: u32, task: TaskId) {
        self.0.borrow_mut().insert(arrival, task);
    }

    /// Forgets it; after its outcome came out.
    pub fn forget(&self, arrival: u32) {
        self.0.borrow_mut().remove(&arrival);
    }

    /// The end of the arrival's task by this outcome; none where it is no task's.
    pub(super) fn completed(&self, arrival: u32, role: Role, outcome: &Outcome) -> Option<Completed> {
        let id = self.0.borrow().get(&arrival).copied()?;
        Some(Completed { id, outcome: pack(role, outcome), settled: None })
    }
}
