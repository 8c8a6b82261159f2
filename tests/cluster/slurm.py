"""A real SLURM on this machine's loopback: the nodes cpu1, and gpu1 with a GPU that is none."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock

# SLURM is configured here alone: inside a job, Snakemake's plugin drops SLURM_CONF.
CONFIGURATION = Path("/etc/slurm")
KEPT = CONFIGURATION.with_name("slurm.kept-by-tests")
CLUSTER = "slurm-of-tests"
LOCK = Path(tempfile.gettempdir()) / f"{CLUSTER}.lock"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
QUEUE = "JobId=%i Name=%j Comment=%k Partition=%P NodeList=%N JobState=%T Reason=%r NumCPUs=%C"
# Lines of slurm.conf: first those of one word each, then those of nodes and partitions.
WORDS = """SlurmctldHost={host}(127.0.0.1) SlurmctldPort={ports[0]}
AuthInfo=socket={state}/munge.socket StateSaveLocation={state}/slurmctld
SlurmctldPidFile={state}/slurmctld.pid SlurmdPidFile={state}/%n.pid SlurmdSpoolDir={state}/%n
ProctrackType=proctrack/linuxproc SelectType=select/cons_tres GresTypes=gpu ReturnToService=2
SelectTypeParameters=CR_CPU_Memory JobCompType=jobcomp/filetxt JobCompLoc={state}/ended.txt"""
NODES = """NodeName=DEFAULT CPUs=2 RealMemory=8000
NodeName=cpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=gpu1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} Gres=gpu:h200:1
PartitionName=cpu Nodes=cpu1 MaxTime=60
PartitionName=gpu Nodes=gpu1 MaxTime=60
PartitionName=main Nodes=cpu1,gpu1 MaxTime=60 Default=YES"""
GPU = "NodeName=gpu1 Name=gpu Type=h200 File=/dev/null\n"  # without a File the node is invalid


def missing() -> str | None:
    """Why no SLURM can be started here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_environment()["PATH"]) is None]
    if absent:
        return f"no {', '.join(absent)} (Debian: apt-get install slurm-wlm slurm-client munge)"
    if os.geteuid() != 0:
        return f"SLURM's daemons and {CONFIGURATION} need root"
    others = set(psutil.process_iter(["name", "status"])) - set(_ours())
    live = {each.info["name"] for each in others if each.info["status"] != "zombie"}
    return "a SLURM of this machine's own is running" if live & {"slurmctld", "slurmd"} else None


class Slurm:
    """Starts SLURM and ends it; keywords are further lines of slurm.conf, such as JobRequeue=0."""

    def __init__(self, **settings: str | int) -> None:
        self.settings = [f"{key}={value}" for key, value in settings.items()]
        self._lock = FileLock(LOCK, timeout=600)
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> "Slurm":
        """Start every daemon, and wait until both nodes are idle."""
        if reason := missing():
            raise RuntimeError(reason)
        self._lock.acquire()  # /etc/slurm is one for the whole machine
        try:
            _clear()  # what a run that crashed has left
            self.state = Path(tempfile.mkdtemp(prefix=f"{CLUSTER}-"))
            self.state.chmod(0o755)  # munge wants a socket that everyone can reach
            self._configure()
            munge = self.state / "munge"  # our own: the machine's key and socket stay
            _ask("mungekey", "--create", f"--keyfile={munge}.key")
            files = [f"--{kind}-file={munge}.{kind}" for kind in ("key", "pid", "log", "seed")]
            self._start("munged", "munged", "--foreground", f"--socket={munge}.socket", *files)
            self._until(Path(f"{munge}.socket").exists, "munged listens")
            self._start("slurmctld", "slurmctld", "-D")
            self.node_up("cpu1")
            self.node_up("gpu1")
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, *error: object) -> None:
        """End every process of this SLURM, its jobs too, and put /etc/slurm back."""
        if self._lock.is_locked:
            _clear()
            while self._daemons:
                self._daemons.popitem()[1].wait()
            self._lock.release()

    __enter__, __exit__ = start, stop

    def scancel(self, job: str | int) -> None:
        _ask("scancel", str(job))

    def node_down(self, name: str) -> None:
        """Let a node die: nothing on it survives, and the controller knows."""
        _kill(name)
        self._daemons.pop(name).wait()
        _ask("scontrol", "update", f"nodename={name}", "state=down", "reason=test")

    def node_up(self, name: str) -> None:
        """Start a node, and wait until it takes jobs."""
        self._start(name, "slurmd", "-D", "-N", name)
        self._until(lambda: self.nodes().get(name) in ("idle", "mixed", "allocated"), f"{name} up")

    def nodes(self) -> dict[str, str]:
        """The state of each node, such as idle, mixed, allocated or down."""
        return dict(re.findall(r"(\S+) (\S+)", _ask("sinfo", "-hNo", "%N %T", check=False)))

    def jobs(self, states: str = "PD,CF,R,S,CG") -> list[dict[str, str]]:
        """The jobs that wait or run (or those of other states, as for squeue)."""
        return _records(_ask("squeue", "-h", "-t", states, "-S", "i", "-o", QUEUE))

    def finished_jobs(self) -> list[dict[str, str]]:
        """Each ended run of a job, as SLURM logged it; with Comment and JOB_GRES for MinJobAge."""
        log = self.state / "ended.txt"
        runs = _records(log.read_text()) if log.exists() else []
        known = {job.get("JobId"): job for job in _records(_ask("scontrol", "-do", "show", "job"))}
        return [known.get(run["JobId"], {}) | run for run in runs]

    def _configure(self) -> None:
        """Put whatever /etc/slurm was aside, whole, so that a crash loses none of it."""
        CONFIGURATION.mkdir(exist_ok=True)
        CONFIGURATION.rename(KEPT)
        CONFIGURATION.mkdir()
        servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        ports = [server.getsockname()[1] for server in servers]
        for server in servers:
            server.close()
        text = "\n".join([f"ClusterName={CLUSTER}", *WORDS.split(), NODES, *self.settings, ""])
        text = text.format(host=socket.gethostname().split(".")[0], ports=ports, state=self.state)
        (CONFIGURATION / "slurm.conf").write_text(text)
        (CONFIGURATION / "gres.conf").write_text(GPU)

    def _start(self, name: str, *command: str) -> None:
        """Start a daemon in the foreground, so that its death is seen here; marked as ours."""
        marked = _environment() | {"SLURM_CLUSTER_NAME": CLUSTER, "SLURMD_NODENAME": name}
        with open(self.state / f"{name}.log", "ab") as log:
            self._daemons[name] = subprocess.Popen(command, env=marked, stdout=log, stderr=log)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait a minute for it; or fail with what the daemons said last."""
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end or any(each.poll() for each in self._daemons.values()):
                logs = [log.read_text()[-500:] for log in self.state.glob("*.log")]
                raise RuntimeError("\n".join([f"not so: {what}", *logs]))
            time.sleep(0.1)


def _clear() -> None:
    """Leave nothing of this or an earlier run: no process, no state, /etc/slurm as it was."""
    _kill()
    for state in LOCK.parent.glob(f"{CLUSTER}-*"):
        shutil.rmtree(state)
    if KEPT.exists():
        shutil.rmtree(CONFIGURATION, ignore_errors=True)
        KEPT.rename(CONFIGURATION)


def _kill(node: str = "") -> None:
    while processes := _ours(node):  # again, until no new one has come
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=0.2)


def _ours(node: str = "") -> list[psutil.Process]:
    """Every process of such a SLURM, or of one node of it: daemons, steps, the jobs' own."""
    marks = {"SLURM_CLUSTER_NAME": CLUSTER} | ({"SLURMD_NODENAME": node} if node else {})
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "slurmstepd":  # it blots out its environment
                paths = [each.laddr for each in process.net_connections("unix")]
                if any(f"/{CLUSTER}-" in path and f"/{node}" in path for path in paths):
                    found.insert(0, process)  # killed first, it cannot tell how its job ended
            elif marks.items() <= process.environ().items():
                found.append(process)
    return found


def _ask(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=_environment())
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Ours, less what would lead to another SLURM; with the folder of daemons."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    return kept | {"PATH": os.environ["PATH"] + ":/usr/sbin"}


def _records(text: str) -> list[dict[str, str]]:
    """Lines of Key=value Key=value, where a value may hold spaces."""
    field = r"([\w:/]+)=(.*?)(?=\s+[\w:/]+=|\s*$)"
    return [dict(re.findall(field, line)) for line in text.splitlines()]
