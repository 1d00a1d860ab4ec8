//! What one run may spend (`--budget`): look-ups, of one provider or of all.

use super::outcome::ErrorBody;
use crate::provider::ErrorType;
use std::cell::Cell;
use std::rc::Rc;

/// A lane's part of the run's budget; every attempt takes of it, retries too.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget {
    /// Of this provider alone.
    pub(super) own: Option<u64>,
    /// Of all together.
    pub(super) run: Option<Rc<Cell<u64>>>,
}

impl Budget {
    /// What is left; none where nothing bounds it.
    pub(super) fn left(&self) -> Option<u64> {
        [self.own, self.run.as_ref().map(|run| run.get())].into_iter().flatten().min()
    }

    /// So many look-ups leave.
    pub(super) fn sent(&mut self, cost: u64) {
        self.own = self.own.map(|left| left.saturating_sub(cost));
        if let Some(run) = &self.run {
            run.set(run.get().saturating_sub(cost));
        }
    }

    /// The word for what it does not reach, once it is spent.
    pub(super) fn spent(&self, provider: &str) -> Option<ErrorBody> {
        let message = match (self.own, self.left()) {
            (Some(0), _) => format!("not asked: this run's budget for {provider} (--budget) is spent"),
            (_, Some(0)) => "not asked: this run's budget (--budget) is spent".to_owned(),
            _ => return None,
        };
        Some(ErrorBody::new(ErrorType::BudgetExhausted, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_one_rules() {
        let run = Rc::new(Cell::new(3));
        let mut one = Budget { own: Some(2), run: Some(Rc::clone(&run)) };
        let mut other = Budget { own: None, run: Some(run) };
        assert_eq!((one.left(), other.left(), Budget::default().left()), (Some(2), Some(3), None));
        one.sent(2);
        assert!(one.spent("x").unwrap().message.contains("for x"));
        assert_eq!(other.spent("y"), None);
        other.sent(5);
        assert!(!other.spent("y").unwrap().message.contains('y'));
        assert_eq!(other.left(), Some(0));
    }
}
