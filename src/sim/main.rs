//! `./build.sh sim`: the reference scenarios as a table, or random worlds.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use headgate_sim::fuzz;
use headgate_sim::model;
use headgate_sim::report::{self, Row};
use headgate_sim::sabotage::Sabotage;
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

    /// Break something on purpose: a trap of the protocol by name or number, or another way; "list"
    /// lists them.
    #[arg(long, value_name = "NAME", value_parser = trap)]
    trap: Option<Broken>,

    /// Tell every event of the worlds on the standard error output.
    #[arg(long)]
    trace: bool,
}

/// What --trap asks for.
#[derive(Clone, Copy, Debug)]
enum Broken {
    List,
    By(Sabotage),
}

fn trap(name: &str) -> Result<Broken, String> {
    if name == "list" {
        return Ok(Broken::List);
    }
    let named = Sabotage::named(name).map(Broken::By);
    named.ok_or_else(|| "no trap has this name or number; --trap list lists them".to_owned())
}

impl Flags {
    fn sabotage(&self) -> Option<Sabotage> {
        match self.trap {
            Some(Broken::By(sabotage)) => Some(sabotage),
            Some(Broken::List) | None => None,
        }
    }

    /// The command that repeats the world of a seed.
    fn repeat(&self, seed: u64) -> String {
        format!("./build.sh sim --seed {seed} --runs 1{}", self.broken())
    }

    /// The command that repeats a reference scenario.
    fn repeat_scenario(&self, name: &str) -> String {
        format!("./build.sh sim --scenario '{name}'{}", self.broken())
    }

    fn broken(&self) -> String {
        let trap = self
            .sabotage()
            .map(|it| format!(" --trap {}", it.about().1));
        trap.unwrap_or_default()
    }
}

fn list_traps() {
    for sabotage in Sabotage::all() {
        let (number, name, wrong) = sabotage.about();
        let number = number.map_or(String::new(), |number| number.to_string());
        println!("{number:>2} {name:<24} {wrong}");
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let flags = Flags::parse();
    if matches!(flags.trap, Some(Broken::List)) {
        list_traps();
        return Ok(ExitCode::SUCCESS);
    }
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
    let mut plan = fuzz::broken_plan(flags.seed, flags.sabotage());
    plan.trace = flags.trace;
    eprintln!("{plan:#?}");
    let report = World::new(plan)?.run()?;
    let mut summary = fuzz::Summary::default();
    summary.add(flags.seed, &report);
    tell_convictions(flags.seed, &flags.repeat(flags.seed), &report);
    let counts = &report.counts;
    eprintln!(
        "{counts:?}, races lost {}, {:?}",
        report.races_lost, report.shard
    );
    println!("{summary}");
    Ok(report.is_right())
}

fn tell_convictions(seed: u64, repeat: &str, report: &Report) {
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
    eprintln!("repeat it: {repeat}");
}

fn random(flags: &Flags, runs: u64) -> anyhow::Result<bool> {
    // A line of progress about a hundred times.
    let every = runs.div_ceil(100).max(1);
    let summary = fuzz::run_many(
        flags.seed,
        runs,
        flags.sabotage(),
        |seed, report, summary| {
            tell_convictions(seed, &flags.repeat(seed), report);
            if summary.runs.is_multiple_of(every) {
                eprintln!("{summary}");
            }
        },
    )?;
    for seed in &summary.failed {
        eprintln!("repeat it: {}", flags.repeat(*seed));
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
        let mut plan = match flags.sabotage() {
            Some(sabotage) => sabotage.applied_to(scenario.plan.clone()),
            None => scenario.plan.clone(),
        };
        plan.trace = flags.trace;
        let report = World::new(plan)?.run()?;
        let row = Row { scenario, report };
        println!("{}", row.line());
        let repeat = flags.repeat_scenario(row.scenario.name);
        tell_convictions(row.scenario.plan.seed, &repeat, &row.report);
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
