"""A cluster of one machine, for tests of deploy/kubernetes.

It takes the objects that `kubectl kustomize` renders and does with a
StatefulSet and a Job what a cluster does, with processes in place of
containers:

  a pod        a network namespace with an address that no pod had before, and a
               root of its own: the machine's programs read-only, and the mounts
               of the manifest
  a volume     ConfigMaps become files; a claim is a folder that stays when its
               pod goes, and comes back with the pod of that name
  a Service    dnsmasq; a headless one has the addresses of all its pods, ready
               or not, another one those of the ready ones
  the kubelet  starts a container as the manifest's user, without capabilities,
               probes it over HTTP, and stops it by SIGTERM with the grace period

Nothing of the machine is changed: call enter() first, which moves this process
into namespaces of its own.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import yaml

SKIPPED = 77  # exit code that CTest takes for "skipped"
PATIENCE = 120  # s; only a test that fails waits so long
DOMAIN = "svc.cluster.local"
CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000


def skip(why):
    print("SKIPPED:", why)
    raise SystemExit(SKIPPED)


def run(*command, **options):
    """The command's stdout; raises with its stderr if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit code "
                             f"{done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def until(what, condition, limit=PATIENCE):
    """Looks until `condition` gives something that is true, and returns it."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.05)


def enter():
    """Moves this process into a network and a mount namespace of its own."""
    if os.geteuid() != 0:
        skip("network namespaces take root")
    for program, package in (("ip", "iproute2"), ("dnsmasq", "dnsmasq-base"),
                             ("setpriv", "util-linux"),
                             ("nsenter", "util-linux"),
                             ("kubectl", "kubernetes-client")):
        if shutil.which(program) is None:
            skip(f"there is no {program} (Debian: {package})")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        skip(f"namespaces cannot be made: {os.strerror(ctypes.get_errno())}")
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "none", "/run/netns")
    run("ip", "link", "set", "lo", "up")


def render(folder):
    """The objects of a kustomization."""
    return [o for o in yaml.safe_load_all(run("kubectl", "kustomize", folder))
            if o]


# What a container's process runs in. $1 is the root, a new tmpfs; the mounts
# are words "source target ro|rw"; "--" and the command follow.
CONTAINER = r"""
set -e
root=$1 programs=$2 hosts=$3 resolv=$4; shift 4
mount -t tmpfs -o mode=755 none "$root"
cd "$root"
mkdir usr proc dev etc dfl
for link in bin sbin lib lib32 lib64; do
  [ ! -L "/$link" ] || cp -d "/$link" "$link"
done
mount --rbind /usr usr; mount -o remount,ro,bind usr
mount --rbind /proc proc
mount --rbind /dev dev
mount --bind "$programs" dfl
for name in alternatives ld.so.cache ld.so.conf nsswitch.conf passwd group; do
  [ ! -e "/etc/$name" ] || cp -a "/etc/$name" etc/
done
cp "$hosts" etc/hosts; cp "$resolv" etc/resolv.conf
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  [ "$3" = rw ] || mount -o remount,ro,bind "$root$2"
  shift 3
done
shift
mount -o remount,ro "$root"
exec chroot "$root" "$@"
"""


class Pod:
    """One pod that runs. `volumes` are folders by name."""

    def __init__(self, cluster, name, template, volumes, labels, hostname):
        self.cluster = cluster
        self.name = name
        self.spec = template["spec"]
        self.labels = dict(template["metadata"]["labels"], **labels)
        self.hostname = hostname
        self.volumes = volumes
        self.process = None
        self.ready = False
        self.address = cluster.new_address()
        self.namespace = f"pod{self.address.rsplit('.', 1)[1]}"
        self.log_path = cluster.file(f"log-{name}-{self.namespace}")
        run("ip", "netns", "add", self.namespace)
        run("ip", "link", "add", self.namespace, "type", "veth", "peer",
            "name", "eth0", "netns", self.namespace)
        run("ip", "link", "set", self.namespace, "master", "br0", "up")
        for words in ("link set lo up", f"addr add {self.address}/24 dev eth0",
                      "link set eth0 up"):
            run("ip", "-n", self.namespace, *words.split())

    def environment(self, container):
        found = {"PATH": "/usr/sbin:/usr/bin", "OPENBLAS_NUM_THREADS": "1"}
        for entry in container.get("env", []):
            if "value" in entry:
                found[entry["name"]] = entry["value"]
                continue
            path = entry["valueFrom"]["fieldRef"]["fieldPath"]
            label = re.fullmatch(r"metadata\.labels\['(.*)'\]", path)
            if label:
                found[entry["name"]] = self.labels[label.group(1)]
            elif path == "metadata.name":
                found[entry["name"]] = self.name
            else:
                raise AssertionError(f"field {path} is not imitated")
        return found

    def start(self, container):
        """Starts a container of the pod; its output is in log()."""
        environment = self.environment(container)
        words = container.get("command", ["/usr/bin/dfld"]) + \
            container.get("args", [])
        words = [re.sub(r"\$\((\w+)\)", lambda m: environment[m.group(1)], w)
                 for w in words]
        # The image has its programs where Debian has them.
        words[0] = words[0].replace("/usr/bin/", "/dfl/")
        mounts = []
        for mount in container.get("volumeMounts", []):
            if mount["name"] in self.volumes:
                mounts += [self.volumes[mount["name"]], mount["mountPath"],
                           "ro" if mount.get("readOnly") else "rw"]
        hosts = self.cluster.file("hosts-" + self.namespace)
        with open(hosts, "w", encoding="utf-8") as out:
            out.write(f"127.0.0.1 localhost\n{self.address} {self.hostname}\n")
        context = self.spec["securityContext"]
        root = self.cluster.file("root-" + self.namespace)
        os.makedirs(root, exist_ok=True)
        command = [
            "nsenter", f"--net=/run/netns/{self.namespace}",
            "unshare", "--mount", "--uts", "--propagation=private", "sh", "-c",
            f"hostname {self.hostname}; " + CONTAINER, "sh",
            root, self.cluster.programs, hosts, self.cluster.resolv, *mounts,
            "--", "setpriv", f"--reuid={context['runAsUser']}",
            f"--regid={context['runAsGroup']}", "--clear-groups",
            "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", *words]
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)

    def log(self):
        with open(self.log_path, encoding="utf-8") as text:
            return text.read()

    def probe(self, kind):
        """Whether a probe of the first container passes, as the kubelet asks."""
        container = self.spec["containers"][0]
        http = container[kind]["httpGet"]
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        url = f"http://{self.address}:{ports[http['port']]}{http['path']}"
        done = subprocess.run(
            ["python3", "-c", "import sys, urllib.request as u\n"
             "sys.exit(u.urlopen(sys.argv[1], timeout=5).status != 200)", url],
            capture_output=True, check=False)
        return done.returncode == 0

    def wait_ready(self):
        def look():
            code = self.process.poll()
            if code is not None:
                raise AssertionError(f"{self.name} ended with {code}:\n"
                                     f"{self.log()}")
            return self.probe("readinessProbe")
        until(f"{self.name} is ready", look)
        self.ready = True
        self.cluster.publish()

    def stop(self):
        """SIGTERM with the grace period; returns the exit code."""
        self.ready = False
        self.cluster.publish()
        self.process.send_signal(signal.SIGTERM)
        grace = self.spec.get("terminationGracePeriodSeconds", 30)
        try:
            return self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -signal.SIGKILL

    def remove(self):
        """The pod is gone, with its address; a claim's folder stays."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        run("ip", "netns", "del", self.namespace)


class Cluster:
    """The machine, its bridge, its name server and its volumes."""

    def __init__(self, objects, programs):
        self.objects = objects
        self.programs = programs
        self.folder = tempfile.mkdtemp(prefix="dfl-cluster-")
        os.chmod(self.folder, 0o755)
        self.pods = {}
        self.secrets = {}  # name to {key: bytes}; what is not here is absent
        self.addresses = 1
        run("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        run("ip", "addr", "add", "10.42.0.1/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        self.resolv = self.file("resolv.conf")
        with open(self.resolv, "w", encoding="utf-8") as out:
            out.write(f"search {self.namespace}.{DOMAIN} {DOMAIN}\n"
                      "nameserver 10.42.0.1\noptions ndots:5\n")
        self.names = self.file("names")
        self.publish_to(self.names, [])
        self.dns = subprocess.Popen(
            ["dnsmasq", "--no-daemon", "--no-resolv", "--no-hosts",
             "--user=root", "--pid-file=", "--conf-file=/dev/null",
             "--local-ttl=0", "--local=/cluster.local/",
             f"--addn-hosts={self.names}"],
            stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for pod in self.pods.values():
                print(f"---- log of {pod.name}\n{pod.log()[-4000:]}")
        for pod in self.pods.values():
            pod.remove()
        self.dns.kill()
        self.dns.wait()
        run("ip", "link", "del", "br0")
        shutil.rmtree(self.folder)

    @property
    def namespace(self):
        return self.one("StatefulSet")["metadata"]["namespace"]

    def file(self, name):
        return os.path.join(self.folder, name)

    def one(self, kind, name=None):
        found = [o for o in self.objects if o["kind"] == kind
                 and name in (None, o["metadata"]["name"])]
        assert len(found) == 1, f"{len(found)} of {kind} {name}"
        return found[0]

    def new_address(self):
        self.addresses += 1
        return f"10.42.0.{self.addresses}"

    # ------------------------------------------------------------- names ----

    @staticmethod
    def publish_to(path, lines):
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        os.rename(path + ".new", path)

    def publish(self):
        """Tells the name server which pods are behind which Service."""
        lines = []
        for service in (o for o in self.objects if o["kind"] == "Service"):
            spec = service["spec"]
            name = f"{service['metadata']['name']}.{self.namespace}.{DOMAIN}"
            for pod in self.pods.values():
                behind = all(pod.labels.get(k) == v
                             for k, v in spec["selector"].items())
                if not behind or not (
                        pod.ready or spec.get("publishNotReadyAddresses")):
                    continue
                lines.append(f"{pod.address} {name}")
                if spec.get("clusterIP") == "None":
                    lines.append(f"{pod.address} {pod.hostname}.{name}")
        self.publish_to(self.names, lines)
        self.dns.send_signal(signal.SIGHUP)

    # ----------------------------------------------------------- volumes ----

    def volumes_of(self, pod_name, spec, claims):
        found = {}
        user = spec["securityContext"]["runAsUser"]
        for volume in spec.get("volumes", []):
            name = volume["name"]
            path = self.file(f"{pod_name}-{name}")
            if "configMap" in volume:
                shutil.rmtree(path, ignore_errors=True)
                os.makedirs(path)
                data = self.one("ConfigMap", volume["configMap"]["name"])["data"]
                for key, text in data.items():
                    with open(os.path.join(path, key), "w",
                              encoding="utf-8") as out:
                        out.write(text)
            elif "emptyDir" in volume:
                shutil.rmtree(path, ignore_errors=True)
                os.makedirs(path)
                os.chown(path, user, user)
            elif "secret" in volume or "projected" in volume:
                shutil.rmtree(path, ignore_errors=True)
                os.makedirs(path)
                source = volume.get("projected") or volume
                for one in source.get("sources", [source]):
                    self.put_secret(path, one["secret"], source.get(
                        "defaultMode", one["secret"].get("defaultMode")),
                                    spec["securityContext"]["fsGroup"])
            else:
                raise AssertionError(f"volume {volume} is not imitated")
            found[name] = path
        for claim in claims:
            name = claim["metadata"]["name"]
            path = self.file(f"claim-{name}-{pod_name}")
            os.makedirs(path, exist_ok=True)
            os.chown(path, user, user)
            found[name] = path
        return found

    def put_secret(self, folder, secret, mode, group):
        """Its files, root's, which the pod's group may read."""
        data = self.secrets.get(secret.get("secretName", secret.get("name")))
        if data is None:
            assert secret.get("optional"), f"there is no Secret for {secret}"
            return
        for item in secret["items"]:
            path = os.path.join(folder, item["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(data[item["key"]])
            os.chown(path, 0, group)
            os.chmod(path, mode)

    # -------------------------------------------------------------- pods ----

    def start_pod(self, ordinal):
        """The StatefulSet's pod of this ordinal, on its claims, elsewhere."""
        stateful = self.one("StatefulSet")["spec"]
        name = f"{self.one('StatefulSet')['metadata']['name']}-{ordinal}"
        if name in self.pods:
            self.pods[name].remove()
        template = stateful["template"]
        volumes = self.volumes_of(name, template["spec"],
                                  stateful.get("volumeClaimTemplates", []))
        labels = {"apps.kubernetes.io/pod-index": str(ordinal),
                  "statefulset.kubernetes.io/pod-name": name}
        pod = Pod(self, name, template, volumes, labels, name)
        self.pods[name] = pod
        self.publish()
        pod.start(template["spec"]["containers"][0])
        return pod

    def run_job(self, name):
        """The Job to its end: its containers one after the other."""
        template = self.one("Job", name)["spec"]["template"]
        pod = Pod(self, name, template,
                  self.volumes_of(name, template["spec"], []), {}, name)
        try:
            containers = template["spec"].get("initContainers", []) + \
                template["spec"]["containers"]
            for container in containers:
                pod.start(container)
                code = pod.process.wait(PATIENCE)
                assert code == 0, \
                    f"{container['name']} ended with {code}:\n{pod.log()}"
            return pod.log()
        finally:
            pod.remove()

    def dflctl(self, pod, *arguments):
        """dflctl on a pod's own socket, as `kubectl exec` has it; JSON."""
        socket = os.path.join(pod.volumes["run"], "control.sock")
        return json.loads(run(os.path.join(self.programs, "dflctl"), "-o",
                              "json", "--target", f"unix:{socket}", *arguments))

    def status(self, pod):
        """The pod's own status; {} while it does not answer."""
        try:
            target = self.dflctl(pod, "status", "--local")["targets"][0]
        except AssertionError:
            return {}
        return target.get("status", {})

    def members(self, pod):
        """State by name of the members that a pod knows."""
        try:
            found = self.dflctl(pod, "node", "list")
        except AssertionError:
            return {}
        return {m["node"]: m for m in found["members"]}
