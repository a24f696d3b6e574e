#!/usr/bin/env python3
"""What the objects of deploy/kubernetes say, beside their form: that names fit,
that pods are restricted, and that settings and plan are what dfld takes.

Usage: manifests_test.py PROGRAMS

PROGRAMS is the folder of dfld and dflctl. Needs kubectl; ends with 77 without.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

PLACE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "../../deploy/kubernetes")
OVERLAYS = ("dev", "secure", "edge", "daemonset")
PROGRAMS = "."


def render(overlay):
    folder = os.path.join(PLACE, "overlays", overlay)
    done = subprocess.run(["kubectl", "kustomize", folder], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [o for o in yaml.safe_load_all(done.stdout) if o]


def templates(objects):
    """(kind/name, pod template) of all that makes pods."""
    for o in objects:
        if "template" in o.get("spec", {}):
            yield f"{o['kind']}/{o['metadata']['name']}", o["spec"]["template"]


def matches(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


class Manifests:
    """The tests of one overlay; see load_tests."""
    overlay = ""

    @classmethod
    def setUpClass(cls):
        cls.objects = render(cls.overlay)

    def nodes(self, objects):
        """The StatefulSet or DaemonSet of the nodes."""
        found = [o for o in objects if o["kind"] in ("StatefulSet", "DaemonSet")]
        self.assertEqual(len(found), 1)
        return found[0]

    # The "restricted" profile of Kubernetes' pod security standards. hostPath
    # is the DaemonSet's one exception, and its namespace says so.
    def test_pods_are_restricted(self):
        objects = self.objects
        for title, template in templates(objects):
            spec = template["spec"]
            self.assertFalse(spec["automountServiceAccountToken"], title)
            self.assertFalse(spec["enableServiceLinks"], title)
            self.assertTrue(spec["securityContext"]["runAsNonRoot"], title)
            self.assertEqual(spec["securityContext"]["runAsUser"], 10001)
            self.assertEqual(
                spec["securityContext"]["seccompProfile"]["type"],
                "RuntimeDefault")
            for container in spec["containers"] + \
                    spec.get("initContainers", []):
                context = container["securityContext"]
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertIn("cpu", container["resources"]["requests"])
                self.assertRegex(container["image"], r":[0-9]")
            for host in ("hostNetwork", "hostPID", "hostIPC"):
                self.assertNotIn(host, spec, title)
            paths = [v for v in spec["volumes"] if "hostPath" in v]
            self.assertTrue(self.overlay == "daemonset" or not paths, title)
        enforced = next(o for o in objects if o["kind"] == "Namespace")[
            "metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        self.assertEqual(enforced, "privileged" if self.overlay == "daemonset"
                         else "restricted")

    def test_probes_ask_the_web_port(self):
        objects = self.objects
        container = self.nodes(objects)["spec"]["template"]["spec"][
            "containers"][0]
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        self.assertEqual(ports, {"peer": 7600, "control": 7601,
                                 "web": 7603})
        for kind, path in (("startupProbe", "/livez"),
                           ("livenessProbe", "/livez"),
                           ("readinessProbe", "/readyz")):
            self.assertEqual(container[kind]["httpGet"],
                             {"path": path, "port": "web"})

    def test_ports_are_those_of_the_settings(self):
        objects = self.objects
        settings = yaml.safe_load(self.settings(objects)["dfld.yaml"])
        for section, port in (("peer", 7600), ("control", 7601),
                              ("web", 7603)):
            self.assertEqual(settings[section]["listen"],
                             [f"0.0.0.0:{port}"])

    def test_services_select_the_nodes(self):
        objects = self.objects
        node = self.nodes(objects)
        labels = node["spec"]["template"]["metadata"]["labels"]
        ports = {p["name"] for p in node["spec"]["template"]["spec"][
            "containers"][0]["ports"]}
        services = {o["metadata"]["name"]: o["spec"] for o in objects
                    if o["kind"] == "Service"}
        self.assertEqual(set(services), {"dfld", "dfld-control"})
        for name, spec in services.items():
            self.assertTrue(matches(spec["selector"], labels), name)
            for port in spec["ports"]:
                self.assertIn(port["targetPort"], ports)
        self.assertEqual(services["dfld"]["clusterIP"], "None")
        self.assertTrue(services["dfld"]["publishNotReadyAddresses"])
        if node["kind"] == "StatefulSet":
            self.assertEqual(node["spec"]["serviceName"], "dfld")
            self.assertEqual(node["spec"]["podManagementPolicy"],
                             "Parallel")
        # The Job is none of the nodes.
        job = next(o for o in objects if o["kind"] == "Job")
        job_labels = job["spec"]["template"]["metadata"]["labels"]
        for name, spec in services.items():
            self.assertFalse(matches(spec["selector"], job_labels), name)

    def test_policies_let_in_who_must_come(self):
        objects = self.objects
        node = self.nodes(objects)["spec"]["template"]["metadata"]["labels"]
        job = next(o for o in objects if o["kind"] == "Job")["spec"][
            "template"]["metadata"]["labels"]
        policies = [o["spec"] for o in objects
                    if o["kind"] == "NetworkPolicy"]

        def allowed(pod, direction, other, port):
            applied = [p for p in policies if matches(
                p["podSelector"]["matchLabels"], pod)
                and direction in p["policyTypes"]]
            side = "from" if direction == "Ingress" else "to"
            return not applied or any(
                {"protocol": "TCP", "port": port} in rule["ports"] and any(
                    "podSelector" in peer and matches(
                        peer["podSelector"]["matchLabels"], other)
                    for peer in rule[side])
                for p in applied for rule in p.get(direction.lower(), []))

        for port, one, other, expected in (
                (7600, node, node, True), (7601, job, node, True),
                (7601, node, node, False), (7600, job, node, False)):
            there = allowed(one, "Egress", other, port) and \
                allowed(other, "Ingress", one, port)
            self.assertEqual(there, expected, (port, one))
        self.assertFalse(allowed(job, "Ingress", node, 7601))

    def test_what_pods_mount_is_there(self):
        objects = self.objects
        maps = {o["metadata"]["name"] for o in objects
                if o["kind"] == "ConfigMap"}
        accounts = {o["metadata"]["name"] for o in objects
                    if o["kind"] == "ServiceAccount"}
        for o in objects:
            if "template" not in o.get("spec", {}):
                continue
            spec = o["spec"]["template"]["spec"]
            self.assertIn(spec["serviceAccountName"], accounts)
            claims = [c["metadata"]["name"] for c in
                      o["spec"].get("volumeClaimTemplates", [])]
            volumes = {v["name"] for v in spec["volumes"]} | set(claims)
            self.assertEqual(len(volumes),
                             len(spec["volumes"]) + len(claims))
            for volume in spec["volumes"]:
                if "configMap" in volume:
                    self.assertIn(volume["configMap"]["name"], maps)
            for container in spec["containers"] + \
                    spec.get("initContainers", []):
                for mount in container["volumeMounts"]:
                    self.assertIn(mount["name"], volumes)

    def settings(self, objects):
        """The files of /config and /config.d of the nodes."""
        spec = self.nodes(objects)["spec"]["template"]["spec"]
        files = {}
        for volume in spec["volumes"]:
            if volume["name"] in ("settings", "conf-d"):
                name = volume["configMap"]["name"]
                files.update(next(o for o in objects if o["kind"] == "ConfigMap"
                                  and o["metadata"]["name"] == name)["data"])
        return files

    def test_settings_are_what_dfld_takes(self):
        objects = self.objects
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "conf.d"))
            for name, text in self.settings(objects).items():
                place = "" if name == "dfld.yaml" else "conf.d"
                with open(os.path.join(folder, place, name), "w",
                          encoding="utf-8") as out:
                    out.write(text)
            done = subprocess.run(
                [os.path.join(PROGRAMS, "dflctl"), "config", "show",
                 os.path.join(folder, "dfld.yaml"), "--conf-d",
                 os.path.join(folder, "conf.d"), "--effective"],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            expected = "insecure" if self.overlay == "dev" else "tls"
            self.assertRegex(done.stdout, rf"(?m)^security +{expected}$")

    def test_plan_is_a_plan(self):
        objects = self.objects
        text = next(o for o in objects if o["kind"] == "ConfigMap"
                    and o["metadata"]["name"] == "dfld-plan")["data"][
                        "plan.yaml"]
        done = subprocess.run(
            [os.path.join(PROGRAMS, "dflctl"), "plan", "validate", "-"],
            input=text, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    # A set that is smaller than what the Job waits for would wait for ever.
    def test_job_waits_for_no_more_nodes_than_there_are(self):
        objects = self.objects
        node = self.nodes(objects)
        job = next(o for o in objects if o["kind"] == "Job")
        words = job["spec"]["template"]["spec"]["initContainers"][0]["args"]
        wanted = int(words[words.index("--for") + 1].split(">=")[1])
        self.assertLessEqual(wanted, node["spec"].get("replicas", wanted))

    def test_every_replica_has_a_certificate_folder(self):
        if self.overlay not in ("secure", "edge"):
            self.skipTest("it has no such Secrets")
        node = self.nodes(self.objects)
        tls = next(v for v in node["spec"]["template"]["spec"]["volumes"]
                   if v["name"] == "tls")["projected"]["sources"]
        names = {s["secret"]["name"] for s in tls}
        for i in range(node["spec"]["replicas"]):
            self.assertIn(f"dfld-{i}-tls", names)
        for source in tls:
            name = source["secret"]["name"].removesuffix("-tls")
            self.assertEqual(
                {item["path"] for item in source["secret"]["items"]},
                {f"{name}/ca.pem", f"{name}/cert.pem", f"{name}/key.pem"})


class Compose(unittest.TestCase):
    """deploy/docker/compose.yaml."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(PLACE, "../docker/compose.yaml"),
                  encoding="utf-8") as text:
            cls.services = yaml.safe_load(text)["services"]
        cls.nodes = {name: service for name, service in cls.services.items()
                     if name.startswith("node-")}

    def test_five_nodes_with_parts_of_their_own(self):
        self.assertEqual(len(self.nodes), 5)
        parts = {s["environment"]["DFLD_DATA_PARTITION_INDEX"]
                 for s in self.nodes.values()}
        self.assertEqual(parts, {"0", "1", "2", "3", "4"})
        for name, service in self.nodes.items():
            self.assertEqual(service["environment"]["DFLD_NAME"], name)
            self.assertIn(f"{name}:/var/lib/dfld", service["volumes"])

    def test_variables_are_settings(self):
        done = subprocess.run([os.path.join(PROGRAMS, "dfld"), "--help"],
                              capture_output=True, text=True, check=True)
        known = {"DFLD_" + key.upper().replace(".", "_") for key in
                 re.findall(r"^  --([a-z_.]+)$", done.stdout, re.M)}
        self.assertGreater(len(known), 50)
        for service in self.nodes.values():
            for variable in service["environment"]:
                self.assertIn(variable, known)

    def test_nodes_find_one_another_by_the_name_they_share(self):
        for service in self.nodes.values():
            aliases = service["networks"]["nodes"]["aliases"]
            self.assertEqual(service["environment"]["DFLD_DISCOVERY_DNS"],
                             f"{aliases[0]}:7600")

    def test_nothing_has_rights(self):
        for service in self.services.values():
            self.assertEqual(service["cap_drop"], ["ALL"])
            self.assertTrue(service["read_only"])
            self.assertEqual(service["user"], "10001:10001")
            self.assertEqual(service["security_opt"],
                             ["no-new-privileges:true"])

    def test_files_that_are_mounted_exist(self):
        folder = os.path.join(PLACE, "../docker")
        for service in self.services.values():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue(os.path.isdir(os.path.join(folder, source)),
                                    source)

    def test_the_plan_waits_for_all(self):
        members = self.services["members"]
        self.assertEqual(set(members["depends_on"]), set(self.nodes))
        self.assertIn("members>=5", members["command"])
        self.assertEqual(self.services["plan"]["depends_on"],
                         {"members": {"condition":
                                      "service_completed_successfully"}})


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for overlay in OVERLAYS:
        case = type(overlay, (Manifests, unittest.TestCase),
                    {"overlay": overlay})
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(loader.loadTestsFromTestCase(Compose))
    return suite


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAMS = sys.argv.pop(1)
    try:
        subprocess.run(["kubectl", "kustomize", "--help"], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        print("SKIPPED: there is no kubectl (Debian 13: kubernetes-client)")
        sys.exit(77)
    unittest.main()
