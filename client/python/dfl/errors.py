"""The one exception of this package."""


class Error(Exception):
    """Why a call failed: `code` is the name of a gRPC status code, such as
    "UNAVAILABLE", and the text is for people."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code
