use super::*;

fn serve(flags: &[&str]) -> Result<Serve, clap::Error> {
    let words = ["headgate", "serve"].iter().chain(flags);
    Args::read(words.copied()).map(|args| {
        let Command::Serve(serve) = args.command;
        serve
    })
}

#[test]
fn the_definition_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn defaults_are_the_protocols() {
    let limits = serve(&[]).unwrap().limits;
    assert_eq!(limits.seat_ttl, Duration::from_secs(5));
    assert_eq!(limits.recall_timeout, Duration::from_millis(30));
    assert_eq!(limits.watch_poll, Duration::from_secs(1));
}

#[test]
fn every_flag_has_its_variable_and_a_heading() {
    let command = Args::command();
    let serve = command.find_subcommand("serve").unwrap();
    for arg in serve.get_arguments().filter(|arg| arg.get_id() != "help") {
        let flag = arg.get_long().unwrap();
        let variable = format!("HEADGATE_{}", flag.to_uppercase().replace('-', "_"));
        assert_eq!(arg.get_env().unwrap(), variable.as_str());
        assert!(arg.get_help_heading().is_some(), "{flag}");
    }
}

#[test]
fn wrong_values_are_usage_errors_that_name_the_flag() {
    let cases: [(&[&str], &str); 9] = [
        (&["--listen", "localhost"], "--listen"),
        (&["--max-keys", "0"], "--max-keys"),
        (&["--max-message-bytes", "1"], "--max-message-bytes"),
        (&["--seat-ttl", "5"], "as in 30ms or 5s"),
        (&["--seat-ttl", "2h"], "between 1ms and 1h"),
        (&["--watch-poll", "0s"], "between 1ms and 1h"),
        (&["--watch-poll", "3s"], "at most half of --seat-ttl 5s"),
        (&["--recall-timeout", "6s"], "shorter than --seat-ttl 5s"),
        (&["--log-level", "loud=very"], "--log-level"),
    ];
    for (flags, words) in cases {
        let error = serve(flags).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(words), "{flags:?}: {error}");
    }
}
