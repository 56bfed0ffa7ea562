"""What the page of figures has: one section per program, or per way to call one."""
import dataclasses
import pathlib


@dataclasses.dataclass
class Section:
    name: str
    title: str
    command: list  # the program, and its arguments
    says: str  # what to know of it
    kind: str = "text"  # text, benchmark (Google Benchmark), file (a file that it writes)
    runs: int = 1  # of the whole program; of a benchmark, repetitions
    limit_s: int = 3600  # for all of them
    file: str = ""  # with figures, below its folder
    pictures: tuple = ()  # patterns, below its folder
    folder: pathlib.Path = None  # its own, for what it writes
    part_flag: str = ""  # runs once for each name that the program prints to --list, by this flag; limit_s is of each
    means: tuple = ()  # columns of which the mean over all parts is shown


def faketime():
    """Debian's library for clocks that move; empty where it is not installed."""
    return next((str(path) for path in sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), "")


def sections(quick, out):
    """For a full page, or a quick one: the same sections, with as little in each as shows that it runs."""

    def pick(full, little):
        return little if quick else full

    def made(name, title, program, full, little, says, runs=1, **more):
        folder = out / name
        arguments = [str(word).replace("FOLDER", str(folder)) for word in pick(full, little)]
        return Section(name, title, [program] + arguments, says, runs=pick(runs, min(runs, 2)), folder=folder,
                       limit_s=pick(more.pop("limit_s", 3600), 120), **more)

    def of_python(name, title, script, full, little, says, **more):
        bench = pathlib.Path(__file__).resolve().parents[1]
        return made(name, title, str(bench / "python/of_build"), [str(bench / script)] + full, [str(bench / script)] + little, says, **more)

    def benchmark(name, title, program, full, little, says):
        return made(name, title, program, full, little + ["--benchmark_min_time=0.01"], says, runs=5, kind="benchmark")

    return [
        made("chains", "Chains: throughput over checkpoint_sequential", "chain_curves", ["--out=FOLDER"],
             ["--out=FOLDER", "--networks=resnet18", "--images=224", "--batches=8"],
             "Time against memory of the strategies that recompute, on the reference networks. Bytes are exact, times modelled. Beaumont et al. 2019 "
             "measured +17.2% for the optimal persistent schedule over its best run, on average.",
             kind="file", file="summary.txt", pictures=("resnet50_224.svg", "resnet18_224.svg", "densenet121_224.svg"), limit_s=7200),
        benchmark("frontiers", "Frontiers against a table for each budget", "frontier_quality", ["--benchmark_filter=budgets:200"],
                  ["--benchmark_filter=resnet101/budgets:20/"],
                  "All budgets at once. `worst` and `mean` are makespans over those of 8,000 slots for each of 200 budgets, but for the `lost` "
                  "at which these find nothing; `exact`: at every budget no persistent schedule is faster."),
        benchmark("table", "The table against the plain recurrence", "persistent_table_bench", [], ["--benchmark_filter=/20/50"],
                  "Numbers in names: stages, slots, budget in per cent of store-all's peak. `reference` and `table`, `wall_1` and `wall_2` (one "
                  "thread, two) are seconds; `ratio` is the first of the two over the second."),
        benchmark("replays", "What searches replay, beside the evaluator", "replay_bench", [], ["--benchmark_filter=/50$|resnet50"],
                  "CPU time of a schedule's accounting by a replay that a search has of its own, and by the evaluator, which it agrees with."),
        benchmark("quality", "Searches beside exhaustive search", "solver_quality", [], ["--benchmark_filter=Joint.*/3/"],
                  "Makespans of searches over the optima of small random problems."),
        made("checkpoints", "Checkpoints of the networks of Feng and Huang 2018", "checkpoint_tables", ["FOLDER"], ["FOLDER"],
             "Columns of F are Feng and Huang 2018's, of FS its supplement's, of R its earlier version's; all others are ours. Times are medians "
             "of five.",
             pictures=("checkpoint_growth.svg", "resnet50_division_tree_graph.svg")),
        benchmark("division_tree", "The division tree", "graph_solver_bench", [], ["--benchmark_filter=/alexnet|/1000$"],
                  "CPU time of the tree and its solver; numbers in names are vertices. Feng and Huang 2018 print 0.097 s for AlexNet, "
                  "0.91 s for ResNet-50, 35 s for DenseNet-121 and 39 s for NASNet-A, of their solver on their machine."),
        made("graphs", "Time within a budget on graphs", "graph_budgets", ["FOLDER"], ["FOLDER", "vgg11"],
             "Exact bytes, modelled times; the lower bound is proven.", runs=3, limit_s=7200),
        made("gaps", "Plans beside what is proven", "gap_table", ["--out=FOLDER"], ["--out=FOLDER", "--networks=vgg11"],
             "Default plan, fast bound, strongest bound, and the gap between the first and the last; a link is half duplex.", limit_s=14400),
        made("placements", "Placements: how far a plan's blocks reach", "placement_extents", ["FOLDER"], ["FOLDER", "alexnet"],
             "Extent of the region over the evaluator's peak, by budgets in shares of plain training's. A dash: no plan within it.",
             limit_s=14400),
        benchmark("minimalloc", "Placements of MiniMalloc's challenging instances", "placement_bench", [], ["--benchmark_filter=/F"],
                  "CPU time until the blocks fit in the capacity of 1,048,576 bytes; `over` is what is beyond it. Eight of the eleven are full at "
                  "some time."),
        made("offloading", "Recomputing, offloading and both", "offload_curves", ["FOLDER"], ["FOLDER", "resnet18"],
             "Beaumont et al. 2020 claim 1.2 times the bound at most for all points of DynProg; Beaumont et al. 2021 four to six times less "
             "memory for recomputing and offloading together.", kind="file", file="summary.md",
             pictures=("resnet50_224.svg", "resnet18_224.svg", "balance.svg"), limit_s=7200),
        benchmark("strategies", "Strategies of offloading", "offload_bench",
                  ["--benchmark_filter=Greedy|DynProg500|Vdnn|Tflms|AutoSwap"], ["--benchmark_filter=Greedy/100/50"],
                  "CPU time of one solve, and makespan over the lower bound (0: no schedule found). Numbers in names: stages; per cent of what "
                  "lies between the least memory and the peak; of DynProg a link of 12.2 GB/s (0) or, as of all others, of 1,500 GB/s (1)."),
        benchmark("pipelines", "Plans of pipelines", "pipeline_bench", [], ["--benchmark_filter=Decoder/1/50"],
                  "CPU time of one plan for 8 devices, 96 layers, 64 microbatches. Numbers in names: stages per device; each device's budget in per "
                  "cent of what one microbatch takes where one device stores all of the chain; whether stages are chosen (1)."),
        made("hits", "The service: cached plans", "service_load", [], ["--rounds=1", "--calls=50", "--burst_seconds=0.1"],
             "Against a bare unary echo of the same sizes, in turns; medians of the rounds.", runs=3),
        made("herd", "The service: all at once for one plan", "service_load", ["--scenario=herd"], ["--scenario=herd", "--callers=200"],
             "One solve answers all of them.", runs=5),
        made("routing", "The service: replicas asked in turn, and by key", "service_load", ["--scenario=routing"],
             ["--scenario=routing", "--networks=12"], "Jobs of two hundred networks, each of eight ranks that ask at once, on three replicas that share a Redis. "
             "Fails where a network is solved twice, or asking by key does not hold less and take one lease for each solve."),
        made("mixed", "The service: a long mixed load", "service_load", ["--scenario=mixed"],
             ["--scenario=mixed", "--seconds=5", "--filling=20"], "Fails for a wrong answer, a late one, or memory that grows."),
        made("crashes", "The service: replicas that are killed", "service_load",
             ["--scenario=crashes", "--sentinel", "--decisions_redis", "--seconds=1800", f"--faketime={faketime()}", "--allow_skipped=disk,clock"],
             ["--scenario=crashes", "--seconds=4", "--pause_seconds=0.5", "--calm_seconds=2", "--seed=3", "--allow_skipped=disk,clock,redis,failover"],
             "Two replicas that are killed, stopped, out of disk (as root) and of moved clocks (with libfaketime); their Redis fails over, is frozen and emptied, "
             "the durable one of decisions is killed and frozen, and a server loses its disk. Fails for a wrong plan, for a pin, unpinning or deletion "
             "that was acknowledged and does not hold or is missing, and for memory that grows. What "
             "could not be injected is said. Code 0 was answered, 5 not found, 14 unavailable."),
        made("shared", "The service: shared with callers who take what they can get", "service_load", ["--scenario=adversaries", "--redis"],
             ["--scenario=adversaries", "--seconds=6", "--turn_seconds=1.5", "--filling=20"],
             "The mixed load of one tenant, alone and beside adversaries, in turns of 5 s; a Redis that answers 5 ms late. Fails for a wrong "
             "answer, and where the 99th of a hundred calls of a kind took over twice as long beside them."),
        made("lookups", "The service: lookups beside lists", "service_load", ["--scenario=lookups", "--redis", "--seconds=60"],
             ["--scenario=lookups", "--seconds=4", "--turn_seconds=1", "--filling=20"],
             "Plans by key that memory does not have, from a Redis that answers 5 ms late, alone and beside two callers that list all plans."),
        made("drain", "The service: a drain under load", "service_load", ["--scenario=drain"], ["--scenario=drain"],
             "Code 0 was answered, 14 refused; nothing that was accepted is lost."),
        benchmark("file_store", "The store in a file", "plan_store_bench", [], ["--benchmark_filter=/50/1/0"],
                  "A random chain. Numbers in names: stages, plans, samples of costs."),
        benchmark("redis_store", "The store in a Redis", "redis_store_bench", [], ["--benchmark_filter=/50/"],
                  "Of this machine; skipped where there is no redis-server. Numbers in names are stages; `raw` is a GET of the same bytes, "
                  "`ratio` a lookup over it; microseconds."),
        made("cluster", "A cluster's days on paper", "cluster_days", [], [],
             "Assumptions, and which figures are measured ones: `day_model.h`. No cluster was asked."),
        made("agent", "What the agent costs", "agent_times", [], ["resnet18", 32, 2, 1, "100%"],
             "Time outside the schedule in each step, and time to the first planned step.", runs=3),
        made("agreement", "Ranks that agree on a plan", "agreement_times", [], ["4", "10", "2", "100"],
             "Threads as ranks over gloo; more ranks are simulated, by what a message took here."),
        made("equality", "Training by plans equals plain training", "train_equality", [],
             ["--networks=vgg11", "--forms=chain", "--types=float32"],
             "Five plans each on small images, two of which may copy; float32, and bfloat16 by autocast. `equal`: plans whose loss, gradients, "
             "buffers and random state are plain training's bit for bit. Searches are cut off after 3 s, so that plans vary from run to run, "
             "and of ResNet-1001 as a chain none recomputes: with `--patience_s=30` they do.",
             part_flag=pick("--networks=", "")),
        made("steps", "Steps against their prediction", "step_times", [],
             ["--networks=resnet18", "--image=32", "--batch=1", "--rounds=1"],
             "By default 96 pixels, batch 4; one thread. Medians and quartiles over rounds in which plain steps, planned ones and profiles take turns.",
             limit_s=7200),
        made("overheads", "Steps against their parts", "step_overheads", [],
             ["--networks=decoder", "--rounds=1"],
             "What a planned step costs beyond a plain one and its recomputations as measured; one thread, freed memory stays with the process. "
             "`a stage` is its forward and backward in a plain step; `loop` is the caller's own, through a PlannedModule. Medians and quartiles over "
             "rounds, in turns; by the wall clock, and by CPU time of the thread. Where a stage takes less than 1 ms, in graphs of small nodes, the "
             "executor's own microseconds per node (the next section) are more than 2% of it, with a plan that keeps all, too.",
             part_flag=pick("--networks=", "")),
        made("nodes", "What the executor costs per node", "node_costs", [], ["--nodes=6", "--rounds=1"],
             "Chains and graphs of tiny nodes: a linear layer, a batch normalisation and a ReLU in turn, by a plan that keeps all, by one for 60% "
             "and plain, in turns; one thread. `beyond plain` of a plan that recomputes has its recomputations in it. The least of all rounds."),
        made("throughput", "Throughput over checkpoint_sequential, measured", "throughput_gain", [],
             ["--configurations=resnet18:32:1", "--rounds=1", "--screenings=1"],
             "Of each network the best run of checkpoint_sequential with any number of segments, and what schedules within that run's memory "
             "gain over it; one thread. Medians and quartiles over rounds. Beaumont et al. 2019 measured +17.2% on a V100, of 198 "
             "configurations.", part_flag=pick("--configurations=", ""),
             means=("optimal_persistent: wall", "CPU", "modelled", "planner's choice: wall")),
        made("memory", "Memory that checkpoints save, measured", "memory_cut", ["--shrink=0"], ["--rows=resnet18", "--shrink=256"],
             "Columns of F are Feng and Huang 2018's, of R its earlier version's. `ran` is the share of their batch; what does not grow "
             "with it is multiplied along.",
             part_flag=pick("--rows=", "")),
        of_python("blocks", "What Python's executor costs per block", "block_costs", [], ["--rounds=1", "--blocks=3"],
                  "Microseconds of CPU: of a block that is kept beyond plain training, of one that is recomputed beyond plain training and one more "
                  "forward, beside torch.utils.checkpoint.", runs=3),
        of_python("gpt2", "GPT-2 small by a plan, from Python", "block_costs", ["--gpt2"],
                  ["--gpt2", "--rounds=1", "--layers=2", "--words=50", "--length=16", "--budget=least"],
                  "A step within 60% of plain training's memory over a plain one and forwards of the blocks that the plan recomputes, the first step "
                  "of a longer batch over a plain one, and what the first step by a cached plan takes beyond plain training's first one. Median, least and most."),
        made("arena", "Steps served from one region", "arena_steps", [], ["resnet18"],
             "Steps whose tensors lie in one reserved region, over ordinary ones: medians and quartiles of pairs, in turns.", limit_s=7200),
    ]
