"""Serves several functions of one source file in one process, each as `functions-framework` serves it alone.

A process of `functions-framework` serves one function, and costs seconds of loading Google's SDKs.

    python -m support.function_host SOURCE PORT TARGET[:SIGNATURE]…
"""

from __future__ import annotations

import sys

import functions_framework
from functions_framework._http.gunicorn import GunicornApplication
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware


def main(source: str, port: str, *targets: str) -> None:
    apps = {}
    for target in targets:
        name, _, signature = target.partition(":")
        apps[f"/{name}"] = functions_framework.create_app(name, source, signature or "cloudevent")
    GunicornApplication(DispatcherMiddleware(NotFound(), apps), "127.0.0.1", port, False).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
