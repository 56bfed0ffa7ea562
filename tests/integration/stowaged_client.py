"""A client of stowaged through grpclib, whose HTTP/2 stack is not gRPC's, and what tests with it have in common.

Needs protoc and Python packages, in a virtual environment at $STOWAGE_PYTHON_VENV or build/python: tests/run makes it.
"""
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
STAGES = 6

# grpc.health.v1 and grpc.reflection.v1alpha, as far as they are asked here. Field numbers are those of the standard files.
HEALTH = """syntax = "proto3"; package grpc.health.v1;
message HealthCheckRequest { string service = 1; }
message HealthCheckResponse { int32 status = 1; }
"""
REFLECTION = """syntax = "proto3"; package grpc.reflection.v1alpha;
message ServerReflectionRequest { string host = 1; string list_services = 7; }
message ServiceResponse { string name = 1; }
message ListServiceResponse { repeated ServiceResponse service = 1; }
message ServerReflectionResponse { ListServiceResponse list_services_response = 6; }
"""


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def use_environment():
    """Starts again with the Python of $STOWAGE_PYTHON_VENV, if that is set and not what runs already."""
    environment = os.environ.get("STOWAGE_PYTHON_VENV")
    if environment and pathlib.Path(environment).resolve() != pathlib.Path(sys.prefix).resolve():
        python = os.path.join(environment, "bin", "python3")
        if not os.access(python, os.X_OK):
            skip(f"no {python}")
        os.execv(python, [python] + sys.argv)


def generate(protos, folder):
    """Python code of the contract, of the day: nothing generated is kept."""
    (folder / "health.proto").write_text(HEALTH)
    (folder / "reflection.proto").write_text(REFLECTION)
    roots = [str(protos), str(protos / "third_party"), str(folder)]
    names = [str(p.relative_to(protos)) for p in sorted((protos / "stowage" / "v1").glob("*.proto"))]
    names += ["health.proto", "reflection.proto"]
    command = ["protoc", f"--python_out={folder}"] + [f"-I{root}" for root in roots] + names
    subprocess.run(command, check=True)
    sys.path.insert(0, str(folder))


def need_programs(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"no {program}")


def need_packages(*packages):
    """The modules of these names; skips where one is missing."""
    try:
        return [importlib.import_module(package) for package in packages]
    except ImportError as error:
        skip(f"{error}; tests/run has the list of packages")


def need_client():
    """What talks to a stowaged."""
    need_packages("grpclib", "google.protobuf")
    need_programs("protoc")


def start(stowaged, *flags, log=None, environment=None):
    """The process, the port of the service and that of its metrics, None where flags give it none. Later flags win. Its log goes to a file.
    `environment`: variables beside those of this process."""
    command = [stowaged, "--store=memory", "--listen=127.0.0.1:0", "--metrics_listen=", *flags]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **(environment or {})})
    line = server.stdout.readline()
    ready = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+), metrics on (?:none|127\.0\.0\.1:(\d+))\n", line)
    assert ready, f"not a ready line: {line!r}"
    return server, int(ready.group(1)), ready.group(2) and int(ready.group(2))


def profile(service, stages=STAGES):
    """A request for a plan of so many stages of 100 bytes, which autograd makes 300, in 250 bytes for each."""
    request = service.ComputePlanRequest()
    chain = request.profile.chain
    chain.input_bytes = 100
    for index in range(stages):
        chain.stages.add(op_kind=f"op{index}", forward_time_ns=10, backward_time_ns=20, output_bytes=100,
                         saved_bytes=300, output_gradient_bytes=100, backward_overhead_bytes=100)
    request.budget.bytes = 250 * stages
    return request


async def unary(channel, path, request, response_type, metadata=None):
    from grpclib.client import UnaryUnaryMethod
    method = UnaryUnaryMethod(channel, path, type(request), response_type)
    return await method(request, timeout=20, metadata=metadata)
