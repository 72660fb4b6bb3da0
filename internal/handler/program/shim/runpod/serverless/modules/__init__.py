from ..._worker import lazy

__path__ = lazy.extended(__path__, __name__)
