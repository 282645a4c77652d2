"""Devices, streams and the execution of compiled objects. Knows neither kernels as Python functions nor compilers."""
