//! The retry budget: retries are a bounded share of first attempts, so that a provider in trouble is not asked more for
//! being in trouble.

/// Retries a run may make before first attempts have paid for any: a run of few addresses may retry too.
const RESERVE: f64 = 10.0;

/// A lane's account of retries. First attempts pay in, retries are paid for.
#[derive(Debug)]
pub(in crate::enrich) struct RetryBudget {
    share: f64,
    balance: f64,
}

impl RetryBudget {
    /// `share`: retries over first attempts, 0 (never) to 1.
    pub(in crate::enrich) fn new(share: f64) -> Self {
        Self { share, balance: if share > 0.0 { RESERVE } else { 0.0 } }
    }

    /// A first attempt was made.
    pub(in crate::enrich) fn deposit(&mut self) {
        self.balance += self.share;
    }

    /// Pays for one retry, or says that there is nothing to pay with.
    pub(in crate::enrich) fn withdraw(&mut self) -> bool {
        let pays = self.balance >= 1.0;
        if pays {
            self.balance -= 1.0;
        }
        pays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_stay_a_share_of_first_attempts() {
        let mut budget = RetryBudget::new(0.2);
        let mut retries = 0;
        for _ in 0..1_000 {
            budget.deposit();
            while budget.withdraw() {
                retries += 1;
            }
        }
        assert!((205..=210).contains(&retries), "{retries}");
        assert!(!RetryBudget::new(0.0).withdraw());
    }
}
