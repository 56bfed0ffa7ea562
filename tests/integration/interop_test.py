#!/usr/bin/env python3
"""Talks to stowaged through grpclib, whose HTTP/2 stack is not gRPC's: health, reflection, a plan, pings.

    interop_test.py STOWAGED PROTO_DIRECTORY

Exits with 77, "skipped", where what stowaged_client.py needs is missing.
"""
import asyncio
import importlib
import pathlib
import signal
import sys
import tempfile

from stowaged_client import STAGES, generate, need_client, profile, start, unary, use_environment


async def check_health(channel):
    health = importlib.import_module("health_pb2")
    for name in ("", "stowage.v1.PlanService"):
        answer = await unary(channel, "/grpc.health.v1.Health/Check",
                             health.HealthCheckRequest(service=name), health.HealthCheckResponse)
        assert answer.status == 1, f"health of {name!r} is {answer.status}, not SERVING"
    print("health: SERVING")


async def check_reflection(channel):
    from grpclib.client import StreamStreamMethod
    reflection = importlib.import_module("reflection_pb2")
    method = StreamStreamMethod(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                                reflection.ServerReflectionRequest, reflection.ServerReflectionResponse)
    answers = await method([reflection.ServerReflectionRequest(list_services="*")], timeout=20)
    names = {service.name for service in answers[0].list_services_response.service}
    expected = {"stowage.v1.PlanService", "grpc.health.v1.Health"}
    assert expected <= names, f"reflection lists {names}"
    print("reflection:", ", ".join(sorted(names)))


async def check_plan(channel):
    service = importlib.import_module("stowage.v1.plan_service_pb2")
    plan = importlib.import_module("stowage.v1.plan_pb2")
    path = "/stowage.v1.PlanService/"
    request = profile(service)
    computed = await unary(channel, path + "ComputePlan", request, service.ComputePlanResponse)
    assert computed.plan.status == plan.PLAN_STATUS_FOUND, computed
    assert computed.source == service.PLAN_SOURCE_SOLVED, computed.source
    assert 0 < computed.plan.prediction.peak_bytes <= 1500, computed.plan.prediction
    ops = [instruction.op for instruction in computed.plan.schedule.instructions]
    # The loss is one stage more.
    assert ops.count(plan.OP_BACKWARD) == STAGES + 1, ops
    assert computed.plan.prediction.recomputed_forwards > 0, "a budget below store-all recomputes"
    lookup = service.GetPlanRequest(keys=[computed.key], budget=request.budget)
    got = await unary(channel, path + "GetPlan", lookup, service.GetPlanResponse)
    assert got.plan == computed.plan, "the cache answers something else"
    print("plan: peak", got.plan.prediction.peak_bytes, "makespan", got.plan.prediction.makespan_ns)


async def check_error(channel):
    from grpclib.const import Status
    from grpclib.exceptions import GRPCError
    service = importlib.import_module("stowage.v1.plan_service_pb2")
    request = profile(service)
    request.profile.chain.stages[2].saved_bytes = -1
    try:
        await unary(channel, "/stowage.v1.PlanService/ComputePlan", request, service.ComputePlanResponse)
    except GRPCError as error:
        assert error.status is Status.INVALID_ARGUMENT, error
        assert "profile.chain.stages[2].saved_bytes" in error.message, error
        print("error:", error.message)
    else:
        raise AssertionError("a negative size was accepted")


async def events_of_idle_connection(port, pings, interval):
    """What the server sends on a connection without calls that pings it so often."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = H2Connection(H2Configuration(client_side=True))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    events = []

    async def receive():
        while data := await reader.read(65536):
            events.extend(connection.receive_data(data))
            writer.write(connection.data_to_send())

    receiver = asyncio.create_task(receive())
    for number in range(pings):
        connection.ping(number.to_bytes(8, "big"))
        writer.write(connection.data_to_send())
        await asyncio.sleep(interval)
    await asyncio.sleep(1 if pings else interval)
    receiver.cancel()
    writer.close()
    return events


async def check_pings(port):
    """Four pings 10 s apart are welcome, where gRPC's default would end the connection; a silent client is pinged."""
    from h2.events import ConnectionTerminated, PingAckReceived, PingReceived
    events, silent = await asyncio.gather(events_of_idle_connection(port, pings=4, interval=10.2),
                                          events_of_idle_connection(port, pings=0, interval=23))
    assert not any(isinstance(event, ConnectionTerminated) for event in events), f"ended: {events}"
    acknowledged = sum(isinstance(event, PingAckReceived) for event in events)
    assert acknowledged == 4, f"not every ping was answered: {events}"
    assert any(isinstance(event, PingReceived) for event in silent), f"the server does not ping: {silent}"
    print("pings: taken and sent")


async def check_all(port):
    from grpclib.client import Channel
    pings = asyncio.create_task(check_pings(port))
    async with Channel("127.0.0.1", port) as channel:
        await check_health(channel)
        await check_reflection(channel)
        await check_plan(channel)
        await check_error(channel)
    await pings


def main():
    use_environment()
    need_client()
    stowaged, protos = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        generate(protos, pathlib.Path(folder))
        server, port, _ = start(stowaged)
        try:
            asyncio.run(check_all(port))
            server.send_signal(signal.SIGTERM)
            assert server.wait(20) == 0, f"stowaged ended with {server.returncode}"
        finally:
            server.kill()
    print("passed")


if __name__ == "__main__":
    main()
