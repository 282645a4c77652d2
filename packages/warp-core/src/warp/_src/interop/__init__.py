"""Sharing memory with other libraries: DLPack, the array interfaces, and bridges to frameworks."""
