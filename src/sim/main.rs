//! `./build.sh sim`: the reference scenarios as a table, or random worlds.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use headgate_sim::fuzz;
use headgate_sim::model;
use headgate_sim::report::{self, Row};
use headgate_sim::scenario;
use headgate_sim::world::{Report, World};

/// Simulates replicas, network, clocks and faults around Headgate's decisions, and judges the
/// answers.
///
/// Without options: the reference scenarios S1 to S10, as a table and as report.json. With --runs:
/// so many random worlds. Exit code 1 if anything was admitted beyond a limit or refused although
/// something was left.
#[derive(Debug, Parser)]
#[command(name = "./build.sh sim", max_term_width = 100)]
struct Flags {
    /// How many random worlds.
    #[arg(long)]
    runs: Option<u64>,

    /// The first world's seed; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Only reference scenarios whose name begins so, as S1 or "S1 N=10". Repeat it for more.
    #[arg(long, value_name = "NAME", conflicts_with = "runs")]
    scenario: Vec<String>,

    /// Look at every history of small models instead, the larger ones included: minutes.
    #[arg(long, conflicts_with_all = ["runs", "scenario"])]
    model: bool,

    /// Folder for report.json.
    #[arg(long, value_name = "FOLDER", default_value = "target/sim")]
    out: PathBuf,

    /// Tell every event of the worlds on the standard error output.
    #[arg(long)]
    trace: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let flags = Flags::parse();
    let is_right = match flags.runs {
        _ if flags.model => models(),
        Some(1) => single(&flags)?,
        Some(runs) => random(&flags, runs)?,
        None => reference(&flags)?,
    };
    Ok(if is_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every history of small worlds.
fn models() -> bool {
    println!(
        "{:24} {:>10} {:>12} {:>6}  result",
        "model", "states", "transitions", "depth"
    );
    let mut is_right = true;
    for model in model::large() {
        let found = model::search::run(&model);
        println!("{found}");
        if let model::search::Ending::Convicted(_, steps) = &found.ending {
            steps.iter().for_each(|step| eprintln!("{step}"));
        }
        is_right &= found.is_right();
    }
    is_right
}

/// One world, told in full.
fn single(flags: &Flags) -> anyhow::Result<bool> {
    let mut plan = fuzz::plan(flags.seed);
    plan.trace = flags.trace;
    eprintln!("{plan:#?}");
    let report = World::new(plan)?.run()?;
    let mut summary = fuzz::Summary::default();
    summary.add(flags.seed, &report);
    tell_convictions(flags.seed, &report);
    let counts = &report.counts;
    eprintln!(
        "{counts:?}, races lost {}, {:?}",
        report.races_lost, report.shard
    );
    println!("{summary}");
    Ok(report.is_right())
}

fn tell_convictions(seed: u64, report: &Report) {
    if report.is_right() {
        return;
    }
    for conviction in &report.verdicts.convictions {
        eprintln!("seed {seed}: {conviction:?}");
    }
    if report.late > 0 || report.broken > 0 {
        let (late, broken) = (report.late, report.broken);
        eprintln!("seed {seed}: {late} answered late or never, {broken} broken invariants");
    }
    eprintln!("repeat it: ./build.sh sim --seed {seed} --runs 1");
}

fn random(flags: &Flags, runs: u64) -> anyhow::Result<bool> {
    // A line of progress about a hundred times.
    let every = runs.div_ceil(100).max(1);
    let summary = fuzz::run_many(flags.seed, runs, |seed, report, summary| {
        tell_convictions(seed, report);
        if summary.runs.is_multiple_of(every) {
            eprintln!("{summary}");
        }
    })?;
    for seed in &summary.failed {
        eprintln!("repeat it: ./build.sh sim --seed {seed} --runs 1");
    }
    println!("{summary}");
    Ok(summary.failed.is_empty())
}

fn reference(flags: &Flags) -> anyhow::Result<bool> {
    let wanted = |name: &str| {
        flags.scenario.is_empty() || flags.scenario.iter().any(|begin| name.starts_with(begin))
    };
    println!("Round trip 0.6 ms, writes durable at once, 2 workers a replica. S7 runs for 4 s and");
    println!("S10 for 60 s, so that the whole takes a minute or so.\n");
    println!("{}", report::head());
    let mut rows = Vec::new();
    for scenario in scenario::all() {
        if !wanted(scenario.name) {
            continue;
        }
        let mut plan = scenario.plan.clone();
        plan.trace = flags.trace;
        let report = World::new(plan)?.run()?;
        let row = Row { scenario, report };
        println!("{}", row.line());
        tell_convictions(row.scenario.plan.seed, &row.report);
        rows.push(row);
    }
    std::fs::create_dir_all(&flags.out)
        .with_context(|| format!("cannot make the folder {}", flags.out.display()))?;
    let path = flags.out.join("report.json");
    std::fs::write(&path, report::json(&rows)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\n{}", path.display());
    Ok(rows.iter().all(Row::is_right))
}
