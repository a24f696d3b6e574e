"""How the nodes of the demo learn together: an algorithm, its knobs, what dflctl
changes of it on the way, and the same steps without an exchange."""

import math


class Pame:
    name, title = "pame", "PaME"
    coordinates = "random"
    knob = "nu"       # shown, and changed on the way
    divides = True    # steps are divided by m, which a plan and a graph decide

    NU, P, KAPPA = 0.5, 0.1, (5, 10)
    SIGMA0, GAMMA = 5, 1.0005

    def knobs(self):
        return (f"nu: {self.NU}, p: {self.P}, "
                f"kappa: [{self.KAPPA[0]}, {self.KAPPA[1]}], "
                f"sigma0: {self.SIGMA0}, gamma: {self.GAMMA}")

    @staticmethod
    def need(status, neighbours):
        """m: how many of so many neighbours are asked."""
        return max(1, math.ceil(status["knobs"]["nu"] * neighbours - 1e-9))

    @staticmethod
    def change(node):
        """For the node that knows least so far: it may ask all neighbours."""
        return "participation", "set", "--node", node, "nu=1"

    def expected(self, name, node):
        return 1 if name == node else self.NU

    def alone(self, m):
        return f"sigma0: {self.SIGMA0}, gamma: {self.GAMMA}, m: {m}"


class GossipNids:
    name, title = "gossip-nids", "gossip-nids"
    coordinates = "dense"
    knob = "K"
    divides = False

    ALPHA, K, LATER_K = 0.05, 40, 60

    def knobs(self):
        return (f"alpha: {self.ALPHA}, K: {self.K}, M: 6, c: 0.1, c0: 0.1, "
                "settle: 20")

    @staticmethod
    def need(_status, _neighbours):
        return 1

    def change(self, _node):
        """The models are near by now: fewer exchanges will do."""
        return "period", "set", f"K={self.LATER_K}"

    def expected(self, _name, _node):
        return self.LATER_K

    def alone(self, _m):
        return f"eta: {self.ALPHA}"


WAYS = {way.name: way for way in (Pame, GossipNids)}
