"""Mutual TLS to a daemon, which must show the certificate of a node of the
caller's own network."""

import os
import socket
import ssl

import grpc

from dfl.errors import Error


class Identity:
    """ca.pem, cert.pem and key.pem of a person's folder, as `dflctl cert issue`
    writes them."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = self._read("ca.pem")
        self.certificate = self._read("cert.pem")
        self.key = self._read("key.pem")

    def path(self, name):
        return os.path.join(self.folder, name)

    def _read(self, name):
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise Error("FAILED_PRECONDITION",
                        "identity: %s; name the folder that `dflctl cert "
                        "issue` wrote" % error) from error


def split(address):
    """Host and port of "host:port" or "[v6]:port"."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise Error("INVALID_ARGUMENT",
                    '"%s" is no target; allowed: unix:/path, host:port, '
                    "insecure:host:port" % address)
    return host.strip("[]"), int(port)


def node_behind(address, identity, timeout):
    """The name of the node whose certificate the daemon at `address` shows.

    gRPC compares it with the certificate of its own connection, so that nobody
    else is spoken to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    host, port = split(address)
    try:
        context.load_verify_locations(identity.path("ca.pem"))
        context.load_cert_chain(identity.path("cert.pem"),
                                identity.path("key.pem"))
        with socket.create_connection((host, port), timeout) as plain:
            with context.wrap_socket(plain) as secure:
                names = secure.getpeercert().get("subjectAltName", ())
    except ssl.SSLError as error:
        raise Error("UNAUTHENTICATED",
                    "%s: the daemon there is refused: %s; is it of your "
                    "network, and does it speak TLS?" % (address, error)) \
            from error
    except OSError as error:
        raise Error("UNAVAILABLE",
                    "%s: nobody answers there: %s" % (address, error)) \
            from error
    for kind, value in names:
        if kind != "URI" or not value.startswith("spiffe://"):
            continue
        parts = value[len("spiffe://"):].split("/")
        if len(parts) == 3 and parts[1] == "node":
            return parts[2]
    raise Error("UNAUTHENTICATED",
                "%s: who answers there shows no certificate of a node"
                % address)


def channel(address, identity, timeout, options):
    credentials = grpc.ssl_channel_credentials(
        identity.authority, identity.key, identity.certificate)
    node = node_behind(address, identity, timeout)
    return grpc.secure_channel(
        address, credentials,
        options + [("grpc.ssl_target_name_override", node)])
