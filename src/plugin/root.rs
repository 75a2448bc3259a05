//! A root's beginning: from the text of a configuration to a filter at work.

use std::rc::Rc;

use headgate_core::rule::Config;

use crate::decide::Env;
use crate::filter::Filter;
use crate::host_api::Host;
use crate::metrics::Metrics;
use crate::upstream::Upstream;
use crate::worker::Worker;

/// Reads a configuration and starts a filter; none if the configuration cannot be used, after the
/// log has said all that is wrong with it. Envoy then keeps the last good one.
///
/// The answer depends on the text alone: were it no in one worker and yes in the others, Envoy
/// would let that worker's requests pass unlimited.
#[must_use]
pub fn configure(host: Rc<dyn Host>, text: &[u8]) -> Option<Filter<Worker>> {
    let config = match Config::parse(text) {
        Ok(config) => config,
        Err(errors) => {
            for issue in errors.issues() {
                log::error!("headgate: configuration refused: {issue}");
            }
            if errors.more() > 0 {
                log::error!(
                    "headgate: configuration refused: and {} more",
                    errors.more()
                );
            }
            return None;
        }
    };
    let counter = config.counter();
    let Some(upstream) = Upstream::new(counter.cluster(), counter.authority()) else {
        log::error!("headgate: configuration refused: counter: names too long for Envoy");
        return None;
    };
    let metrics = Rc::new(Metrics::define(Rc::clone(&host)));
    let env = Env {
        host,
        metrics,
        config: Rc::new(config),
        upstream: Rc::new(upstream),
    };
    Some(Filter::new(env.clone(), Worker::new(env)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeEnvoy;
    use crate::filter::TICK_BUSY_MS;
    use crate::host_api::Operation;

    const GOOD: &str = r#"{"counter": {"cluster": "c"}, "rules": [
        {"name": "r", "limit": {"amount": 1, "per": "day"}, "when_undecided": "deny"}]}"#;

    #[test]
    fn a_good_configuration_starts_the_tick() {
        let host = FakeEnvoy::new().worker(0);
        assert!(configure(host.clone(), GOOD.as_bytes()).is_some());
        assert_eq!(host.tick_ms(), TICK_BUSY_MS);
    }

    #[test]
    fn a_trial_configuration_writes_nothing_that_others_see() {
        let envoy = FakeEnvoy::new();
        assert!(configure(envoy.worker(0), GOOD.as_bytes()).is_some());
        assert_eq!((envoy.keys(), envoy.next_call()), (vec![], None));
    }

    #[test]
    fn a_bad_one_is_refused_and_leaves_no_trace() {
        let host = FakeEnvoy::new().worker(0);
        for text in ["", "{", "{}", &GOOD.replace("1,", "0,")] {
            assert!(configure(host.clone(), text.as_bytes()).is_none(), "{text}");
        }
        assert_eq!(host.tick_ms(), 0);
    }

    #[test]
    fn a_host_that_refuses_everything_does_not_change_the_answer() {
        let envoy = FakeEnvoy::new();
        for operation in [
            Operation::Tick,
            Operation::Metric,
            Operation::Clock,
            Operation::Queue,
            Operation::Random,
            Operation::SharedData,
        ] {
            envoy.fail(operation, true);
        }
        assert!(configure(envoy.worker(0), GOOD.as_bytes()).is_some());
    }
}
