"""Only defines a function: serve it as function.py:handler."""


def handler(job):
    return {"main": __name__, "hello": job["input"].get("name", "nobody")}
