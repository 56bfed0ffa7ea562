"""What a cluster does to a stowaged in a day, in seconds: jobs of two tenants that look plans up, have them made, train and
report; some with mistakes, some too many at once, some with little time."""
import asyncio
import importlib
import pathlib
import random
import shutil
import ssl
import subprocess

from stowaged_client import profile, start, unary

SERVICE = "/stowage.v1.PlanService/"
TOKENS = {"vision": "a-token-of-vision-0001", "language": "a-token-of-language-0001"}
NETWORKS = 10
STAGES = 24
MISTAKE = 3  # the change of the file of tokens that is one


def token_file(folder):
    path = folder / "tokens"
    path.write_text("".join(f"{token} {tenant} planner\n" for tenant, token in TOKENS.items()))
    return path


def certificate(folder):
    """A certificate and its key, for this machine and a month."""
    files = folder / "tls.crt", folder / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stowaged", "-days", "30",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", files[1], "-out", files[0]],
                   check=True, capture_output=True, timeout=60)
    return files


class Cluster:
    """A stowaged of two tenants, over TLS, with plans in memory, a file and a Redis of its own; all ended by close()."""

    def __init__(self, stowaged, folder):
        socket = folder / "redis.sock"
        self.tokens = token_file(folder)
        self.certificate, key = certificate(folder)
        self.redis = subprocess.Popen([shutil.which("redis-server"), "--port", "0", "--unixsocket", str(socket), "--save", "",
                                       "--dir", str(folder)], stdout=subprocess.DEVNULL)
        self.server, self.port, self.metrics_port = start(
            stowaged, "--metrics_listen=127.0.0.1:0", f"--store=sqlite:{folder}/plans.db", f"--redis={socket}",
            f"--token_file={self.tokens}", f"--tls_cert={self.certificate}", f"--tls_key={key}",
            "--reload_interval=1s", "--solver_threads=1", "--queue_limit=8", "--log_level=error")

    def channel(self):
        from grpclib.client import Channel
        trusted = ssl.create_default_context(cafile=str(self.certificate))
        trusted.set_alpn_protocols(["h2"])
        return Channel("127.0.0.1", self.port, ssl=trusted)

    def close(self):
        for process in (self.server, self.redis):
            process.kill()
            process.wait()


class Job:
    """A training job of a tenant: asks as the agent does, by key first, and reports."""

    def __init__(self, channel, tenant, number):
        self.service = importlib.import_module("stowage.v1.plan_service_pb2")
        self.channel = channel
        self.name = f"{tenant}-{number}"
        self.metadata = {"authorization": "Bearer " + TOKENS[tenant]}
        self.draw = random.Random(self.name)
        self.keys = {}

    async def call(self, method, request):
        response = getattr(self.service, method + "Response")
        return await unary(self.channel, SERVICE + method, request, response, metadata=self.metadata)

    def problem(self, network, stages=STAGES):
        request = profile(self.service, stages)
        request.profile.chain.input_bytes += network
        request.budget.bytes += 40 * stages * (network % 4)
        request.job = self.name
        return request

    async def step(self):
        network = self.draw.randrange(NETWORKS)
        problem = self.problem(network)
        key = self.keys.pop(network, None)  # and forgotten where it is of no use
        if key:
            answer = await self.call("GetPlan", self.lookup(key, problem.budget))
        else:
            answer = await self.call("ComputePlan", problem)
        self.keys[network] = answer.key
        await self.report(answer, problem.budget.bytes, network)

    def lookup(self, key, budget):
        """By the job's own key; now and then by a larger shape's, or for a budget that nobody has asked for."""
        request = self.service.GetPlanRequest(keys=[key], budget=budget, job=self.name)
        kind = self.draw.random()
        if kind < 0.05:
            unknown = self.service.PlanKey(encoding_version=key.encoding_version, digest=bytes(32))
            request.keys.insert(0, unknown)
        elif kind < 0.1:
            request.budget.bytes = 1
        return request

    async def report(self, answer, budget, network):
        """Steps are some percent slow; all jobs on one network take more memory than its budget."""
        prediction = answer.plan.prediction
        peak = 1.03 * budget if network == 0 else self.draw.uniform(0.99, 1.0) * prediction.peak_bytes
        await self.call("ReportExecution", self.service.ReportExecutionRequest(
            key=answer.key, plan_digest=answer.plan.digest, revision=answer.plan.revision, budget_bytes=budget,
            steps=self.draw.randrange(1, 1000), job=f"{self.name}-{self.draw.randrange(10**9)}",
            measured_step_time_ns=int(prediction.makespan_ns * self.draw.uniform(1.0, 1.06)), measured_peak_bytes=int(peak),
            measured_reserved_peak_bytes=int(1.1 * peak)))


async def tolerate(call):
    """Of calls that are meant to be refused."""
    from grpclib.exceptions import GRPCError
    try:
        await call
    except (GRPCError, asyncio.TimeoutError):
        pass


async def odd_calls(job, number):
    service = job.service
    wrong = job.problem(0)
    wrong.budget.bytes = -1
    await tolerate(job.call("ComputePlan", wrong))
    await tolerate(job.call("GetFrontier", service.GetFrontierRequest(profile=job.problem(number).profile)))
    batches = [service.BatchProfile(batch_size=size, profile=job.problem(1).profile) for size in (1, 2)]
    await tolerate(job.call("FitBatch", service.FitBatchRequest(profiles=batches, device_budget_bytes=10**6, max_batch_size=8)))
    await tolerate(job.call("GetCapabilities", service.GetCapabilitiesRequest()))
    # More than the queue takes.
    await asyncio.gather(*(tolerate(job.call("ComputePlan", job.problem(1000 * number + i, 60))) for i in range(40)))


async def run(cluster, seconds):
    """Load for so many seconds, or longer on a slow machine; the file of tokens changes meanwhile, once for the worse."""
    end = asyncio.get_running_loop().time() + seconds
    async with cluster.channel() as channel:
        jobs = [Job(channel, tenant, number) for tenant in TOKENS for number in range(3)]
        good = cluster.tokens.read_text()

        async def train(job):
            while asyncio.get_running_loop().time() < end:
                await tolerate(job.step())
                await asyncio.sleep(0.02)

        async def disturb():
            number = 0
            while number <= MISTAKE or asyncio.get_running_loop().time() < end:
                number += 1
                await odd_calls(jobs[number % len(jobs)], number)
                replace(cluster.tokens, good + ("# again\n" * number if number != MISTAKE else "not a line of tokens\n"))
                await asyncio.sleep(2)

        await asyncio.gather(disturb(), *(train(job) for job in jobs))


def replace(path, text):
    new = pathlib.Path(str(path) + ".new")
    new.write_text(text)
    new.rename(path)
